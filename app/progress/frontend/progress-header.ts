/**
 * A page's display of the learner's progress. Pages are the same for everyone: the header comes as a fragment, the
 * state of lessons as JSON, and a visitor's reading progress from this browser.
 */

import { availableStorage, currentAccount, reloadForAccount } from "../../accounts/frontend/account-storage";
import { responseError, send } from "../../runs/frontend/api";
import { make } from "../../web/frontend/element";
import { language, say, sayCount } from "../../web/frontend/strings";
import { type ReadingProgress, ReadingProgressStore } from "./reading-progress";
import { setUpScrollTracking } from "./scroll-tracking";

type Stage = "new" | "started" | "completed" | "revisited";

interface LessonState {
  slug: string;
  stage: Stage;
  exercises_done: number;
  exercises: number;
}

const NEWS = "lockstep:news";
const MOST_AT_ONCE = 200;
const GAIN_MS = 4_000;

export function setUpProgressHeader(): void {
  const place = document.getElementById("progress-header");
  if (place) new ProgressHeader(place, new ReadingProgressStore());
}

class ProgressHeader {
  /** The server's marker of this learner; empty for a visitor. */
  private who = "";
  private cursor: string | null = null;
  /** A run has ended before the header was there. */
  private missed = false;
  /** Progress that was recorded before the page knew the learner. */
  private pending: ReadingProgress | null = null;
  /** The original text and link of the button that starts the course. */
  private start: { words: string; href: string } | null = null;
  private asking: Promise<void> = Promise.resolve();
  private readonly reading = document.querySelector<HTMLElement>("[data-reading]");

  constructor(
    private readonly place: HTMLElement,
    private readonly readingProgress: ReadingProgressStore,
  ) {
    if (this.reading) setUpScrollTracking(this.reading, readingProgress, (reading) => void this.onProgress(reading));
    this.paint(null);
    const here = this.lastHere();
    if (here) this.offer(here);
    document.addEventListener("htmx:after:swap", () => this.swapped());
    document.addEventListener("lockstep:finished", (event) => {
      if (!(event as CustomEvent<{ restored: boolean }>).detail.restored) this.ask();
    });
    window.addEventListener("online", () => void this.saveAll());
    // The browser may restore a page after its learner has signed out.
    window.addEventListener(
      "pageshow",
      ({ persisted }) => persisted && document.body.dispatchEvent(new CustomEvent("lockstep:progress")),
    );
  }

  // --- the header was loaded, or reloaded ---

  private swapped(): void {
    this.patchEnd();
    const button = this.place.querySelector<HTMLElement>("[data-who]");
    if (!button || button.dataset.seen) return;
    button.dataset.seen = "yes";
    const { who = "", cursor = "" } = button.dataset;
    if (this.who && who !== this.who) {
      reloadForAccount(); // somebody else is here now, and the page shows another person's data
      return;
    }
    this.who = who;
    if (!who) this.readingProgress.leave();
    this.follow(cursor);
    void this.saveAll().then(() => this.savePending());
    void this.fetchStages();
    const resume = this.place.querySelector<HTMLAnchorElement>("[data-resume]");
    if (resume) this.offer({ title: resume.dataset.resume ?? "", href: resume.href });
    else if (this.place.querySelector("[data-all-done]")) this.offer(null);
  }

  /** Shows awards since this browser's last check, including those from when no page was open. */
  private follow(now: string): void {
    const kept = this.kept();
    const known = kept?.who === this.who;
    if (this.cursor === null) this.cursor = known ? kept.cursor : now;
    if (!known) this.keep();
    if (this.missed || (known && this.cursor !== now)) this.ask();
    this.missed = false;
  }

  // --- awards ---

  /** Asks for news, one request at a time. */
  private ask(): void {
    this.asking = this.asking.then(() => this.askOnce()).catch(() => undefined);
  }

  private async askOnce(): Promise<void> {
    if (this.cursor === null) {
      this.missed = true;
      return;
    }
    const kept = this.kept();
    if (kept && kept.who === this.who && this.who) this.cursor = kept.cursor; // another tab may have shown some
    const response = await send(`/${language()}/progress/awards?since=${encodeURIComponent(this.cursor)}`);
    if (!response.ok) throw await responseError(response);
    const news = new DOMParser()
      .parseFromString(await response.text(), "text/html")
      .querySelector<HTMLElement>("[data-cursor]");
    if (!news) return;
    this.cursor = news.dataset.cursor ?? this.cursor;
    this.keep();
    const [cards, gain] = [[...news.querySelectorAll<HTMLElement>(".award")], Number(news.dataset.otherXp)];
    if (!cards.length && !gain) return;
    document.body.dispatchEvent(new CustomEvent("lockstep:progress"));
    if (gain > 0) this.showGain(gain);
    if (cards.length) (await import("./awards")).show(cards);
  }

  private showGain(xp: number): void {
    this.place.parentElement?.querySelector(".gain")?.remove();
    const gain = make("span.gain", { "aria-hidden": "true" }, say("learning.gain", { xp }));
    this.place.after(gain);
    gain.style.right = `${document.documentElement.clientWidth - this.place.getBoundingClientRect().right}px`;
    window.setTimeout(() => gain.remove(), GAIN_MS);
  }

  private kept(): { who: string; cursor: string } | null {
    try {
      const kept = JSON.parse(availableStorage()?.getItem(NEWS) ?? "null") as {
        who?: unknown;
        cursor?: unknown;
      } | null;
      return typeof kept?.who === "string" && typeof kept.cursor === "string"
        ? { who: kept.who, cursor: kept.cursor }
        : null;
    } catch {
      return null;
    }
  }

  /** A response may arrive after the account has signed out in this browser: then nothing is stored. */
  private keep(): void {
    try {
      if (this.who && currentAccount() !== null)
        availableStorage()?.setItem(NEWS, JSON.stringify({ who: this.who, cursor: this.cursor }));
    } catch {
      // Storage is full or denied: only this page keeps it.
    }
  }

  // --- reading progress ---

  private async onProgress(reading: ReadingProgress): Promise<void> {
    this.patchEnd();
    if (this.who) await this.save([reading]);
    else this.pending = reading;
  }

  private async savePending(): Promise<void> {
    if (!this.who || !this.pending) return;
    const reading = this.pending;
    this.pending = null;
    await this.save([reading]);
  }

  private async saveAll(): Promise<void> {
    if (!this.who || this.readingProgress.isSynced(this.who)) return;
    const all = this.readingProgress.all();
    for (let i = 0; i < all.length; i += MOST_AT_ONCE) if (!(await this.save(all.slice(i, i + MOST_AT_ONCE)))) return;
    this.readingProgress.markSynced(this.who);
  }

  /** Whether the server has accepted them; if not, all are sent again once it is back. */
  private async save(lessons: ReadingProgress[]): Promise<boolean> {
    const time_zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    try {
      const body = JSON.stringify({ time_zone, lessons });
      const response = await send("/progress/reading", { method: "POST", body, keepalive: true });
      if (!response.ok) throw await responseError(response);
    } catch {
      this.readingProgress.markSynced("");
      return false;
    }
    if (lessons.some((lesson) => lesson.end_reached_at !== null)) this.ask();
    return true;
  }

  /** The server does not know how far a visitor has read, but this browser does. */
  private patchEnd(): void {
    const here = this.reading && this.readingProgress.find(this.reading.dataset.reading ?? "");
    const line = document.querySelector<HTMLElement>("[data-end-mark][data-done=no]");
    if (!here?.end_reached_at || !line) return;
    line.dataset.done = "yes";
    const words = line.querySelector("p");
    if (words) words.textContent = say("learning.read");
  }

  // --- the state of lessons, and where to continue ---

  private async fetchStages(): Promise<void> {
    const links = document.querySelectorAll<HTMLElement>("a[data-lesson-link]");
    if (!links.length) return;
    if (!this.who) {
      this.paint(new Map());
      return;
    }
    const courses = new Set([...links].map((link) => link.dataset.lessonLink?.split("/")[0] ?? ""));
    const stages = new Map<string, LessonState>();
    const given = this.place.querySelector<HTMLElement>("[data-stages]")?.dataset;
    for (const course of courses) {
      if (given?.stages && given.course === course) {
        for (const state of JSON.parse(given.stages) as LessonState[]) stages.set(`${course}/${state.slug}`, state);
        continue;
      }
      const response = await send(`/${language()}/progress/outline?course=${encodeURIComponent(course)}`).catch(
        () => null,
      );
      if (!response?.ok) continue;
      const { lessons } = (await response.json()) as { lessons: LessonState[] };
      for (const state of lessons) stages.set(`${course}/${state.slug}`, state);
    }
    this.paint(stages);
  }

  /** Shows the stages; null while the page does not know them. */
  private paint(stages: Map<string, LessonState> | null): void {
    for (const link of document.querySelectorAll<HTMLElement>("a[data-lesson-link]")) {
      const lesson = link.dataset.lessonLink ?? "";
      const state = stages?.get(lesson);
      const known = state?.stage ?? "new";
      const stage = known === "new" && this.readingProgress.find(lesson) ? "started" : known;
      const done = stage === "completed" || stage === "revisited";
      link.dataset.stage = done ? "done" : stage;
      const words = link.querySelector(".stage-words");
      const exercises =
        state?.exercises && !done && stage !== "new"
          ? sayCount("learning.exercises", state.exercises, { done: state.exercises_done })
          : "";
      const word = done ? say("learning.done") : stage === "started" ? say("learning.begun") : "";
      if (words) words.textContent = [word, exercises].filter(Boolean).join(" · ");
    }
    if (!stages) return;
    for (const words of document.querySelectorAll<HTMLElement>("[data-required-lesson]")) {
      const stage = stages.get(words.dataset.requiredLesson ?? "")?.stage;
      words.textContent = say(stage === "completed" || stage === "revisited" ? "learning.done" : "learning.notDone");
    }
  }

  /** The lesson that was open last in this browser, if this page links to it. */
  private lastHere(): { title: string; href: string } | null {
    const last = this.readingProgress.all().sort((a, b) => b.last_seen_at - a.last_seen_at)[0];
    const link = last && document.querySelector<HTMLAnchorElement>(`a[data-lesson-link="${CSS.escape(last.lesson)}"]`);
    if (!link) return null;
    const title = link.querySelector("b")?.textContent ?? "";
    return { title, href: link.href + (last.anchor ? `#${encodeURIComponent(last.anchor)}` : "") };
  }

  /** Makes the button that starts the course continue it; null restores the button. */
  private offer(left: { title: string; href: string } | null): void {
    const start = document.querySelector<HTMLAnchorElement>("[data-continue]");
    const words = start?.querySelector(".label");
    if (!start || !words) return;
    this.start ??= { words: words.textContent, href: start.href };
    start.href = left?.href ?? this.start.href;
    words.textContent = left ? say("learning.continue", { lesson: left.title }) : this.start.words;
  }
}
