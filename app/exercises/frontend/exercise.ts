/**
 * The checks of an exercise: submits the cell's code, shows each result as it arrives, and requests the rest of the
 * panel (tries, hints, solution) when the judgement has ended. The server renders that panel; see app/exercises.
 */

import htmx from "htmx.org";
import { NetworkError, ResponseError, runOf, stop, submitExercise } from "../../runs/frontend/api";
import type { Cell } from "../../runs/frontend/cell";
import { followRun } from "../../runs/frontend/follow-run";
import { Output } from "../../runs/frontend/output";
import type { CheckEvent, Run, Waiting } from "../../runs/frontend/protocol";
import { retryUntilAccepted } from "../../runs/frontend/retry";
import { waitingLine } from "../../runs/frontend/status";
import { Transcript } from "../../runs/frontend/transcript";
import { announce, joinSentences } from "../../web/frontend/announce";
import { newKey } from "../../web/frontend/double-submit";
import { codeSpans, need } from "../../web/frontend/element";
import { fill, say, sayCount } from "../../web/frontend/strings";

type Tone = "plain" | "live" | "good" | "bad";

export class Exercise {
  private readonly status: HTMLElement;
  private readonly output: Output;
  private readonly outputBox: HTMLElement;
  private run: Run | null = null;
  private pending: AbortController | null = null;
  /** The id of the place whose button was pressed last: that button may be gone afterward. */
  private pressed = "";
  private readonly panel: string;

  constructor(
    readonly root: HTMLElement,
    private readonly cell: Cell,
  ) {
    this.panel = root.dataset.panel ?? "";
    this.status = need(root, ".exercise-status");
    this.outputBox = need(root, ".exercise-output");
    const bar = need(root, ".exercise-output-bar");
    this.output = new Output(need(root, ".exercise-output .output"), bar, cell.title, `${cell.name}-checks.txt`);
    cell.check = () => void this.check();
    root.addEventListener("click", (event) => {
      const action = (event.target as Element).closest<HTMLElement>("[data-action]")?.dataset.action;
      if (action === "check") void this.check();
      else if (action === "stop-check") void this.stop();
      else if (action === "use-try") this.useTry(event.target as Element);
    });
    root.addEventListener("click", (event) => {
      this.pressed =
        (event.target as Element).closest("button")?.closest(".hints, .solution-place, .review-place")?.id ?? "";
    });
    document.addEventListener("htmx:after:swap", () => {
      this.keepFocus();
      void this.resume();
    });
  }

  /** Submits the cell's code to be judged. During a judgement, only announces that it is running. */
  async check(): Promise<void> {
    if (this.atWork) {
      announce(say("check.atWork", { cell: this.cell.title }));
      return;
    }
    const hope = new AbortController();
    this.pending = hope;
    this.begin();
    const code = this.cell.currentCode;
    const key = newKey();
    const away = (error: ResponseError | NetworkError): void =>
      this.say(error instanceof ResponseError ? error.message : say("state.serverAway"), "bad");
    try {
      const run = await retryUntilAccepted(() => submitExercise(this.panel, code, key), away, hope.signal);
      this.pending = null;
      if (!run) {
        this.end(say("check.stopped"), "plain");
      } else {
        if (hope.signal.aborted) await stop(run);
        await this.follow(run);
      }
    } catch (error) {
      this.pending = null;
      if (!(error instanceof ResponseError || error instanceof NetworkError)) throw error;
      this.end(error.message, "bad");
      announce(error.message);
      await this.refresh();
    }
  }

  private get atWork(): boolean {
    return this.pending !== null || this.run !== null;
  }

  private get body(): HTMLElement {
    return need(this.root, ".exercise-body");
  }

  /** Follows a judgement that was running when the page was loaded, or that was started in another tab. */
  private async resume(): Promise<void> {
    const id = this.body.dataset.running;
    if (!id || this.atWork) {
      if (!this.atWork && !this.status.textContent) this.summarize();
      return;
    }
    const hope = new AbortController();
    this.pending = hope;
    try {
      const run = await runOf(id); // until it is here, the page shows what the server knows
      this.pending = null;
      this.begin();
      await this.follow(run);
    } catch (error) {
      this.pending = null;
      if (!(error instanceof ResponseError || error instanceof NetworkError)) throw error;
      this.end(error.message, "bad");
    }
  }

  /** What a pressed button brought has the focus if the button is gone. */
  private keepFocus(): void {
    const place = this.pressed ? document.getElementById(this.pressed) : null;
    if (!place || document.activeElement !== document.body) return;
    this.pressed = "";
    (place.querySelector<HTMLElement>(".solution") ?? place).focus();
  }

  private async stop(): Promise<void> {
    this.pending?.abort();
    try {
      if (this.run) await stop(this.run);
    } catch (error) {
      if (!(error instanceof ResponseError || error instanceof NetworkError)) throw error;
      announce(error.message);
    }
  }

  private begin(): void {
    this.body.dataset.verdict = "";
    this.root.toggleAttribute("data-at-work", true);
    this.show(need(this.root, "[data-action=stop-check]"), true);
    need(this.root, "[data-action=check]").setAttribute("aria-disabled", "true");
    this.outputBox.hidden = true;
    this.say(say("check.running"), "live");
    for (const item of this.root.querySelectorAll<HTMLElement>(".check")) {
      item.dataset.outcome = "pending";
      need(item, ".check-word").textContent = "";
      need(item, ".check-message").textContent = "";
      for (const value of item.querySelectorAll<HTMLElement>(".check-values > div")) value.hidden = true;
    }
  }

  private async follow(run: Run): Promise<void> {
    this.run = run;
    const transcript = new Transcript();
    let shown = 0;
    this.output.show(transcript, run);
    const changed = (): void => {
      if (transcript.started) this.say(say("check.running"), "live");
      const results: string[] = [];
      for (; shown < transcript.checks.length; shown++) {
        results.push(this.showCheck(transcript.checks[shown] as CheckEvent));
      }
      if (results.length) announce(...results);
      if (transcript.items.length) this.outputBox.hidden = false;
      this.output.changed();
    };
    try {
      await followRun(run, transcript, {
        changed,
        waiting: (waiting: Waiting) => waiting.state !== "running" && this.say(waitingLine(waiting).word, "live"),
        reconnecting: (broken) => this.say(say(broken ? "state.reconnecting" : "check.running"), "live"),
      });
      changed();
      if (transcript.finished?.outcome === "ok") this.sayCount();
      await this.output.paintAll();
    } catch (error) {
      if (!(error instanceof ResponseError)) throw error;
    }
    await this.refresh().finally(() => {
      this.run = null;
    });
    document.body.dispatchEvent(new Event("lockstep:progress"));
    this.summarize(true);
    if (!this.body.dataset.verdict) this.reportMissingPanel();
  }

  /** Requests the current panel; open hints stay open. */
  private async refresh(): Promise<void> {
    const hints = [...this.root.querySelectorAll<HTMLElement>(".hints")].map(({ dataset }) => dataset.open ?? "0");
    const held = this.root.contains(document.activeElement) ? document.activeElement?.id : "";
    await htmx.ajax("GET", `${this.panel}?hints=${hints.join(",")}`, {
      source: this.root,
      target: `#${CSS.escape(this.body.id)}`,
      swap: "outerMorph",
    });
    if (held) document.getElementById(held)?.focus();
  }

  /** Shows the result of a check. Returns it as a sentence; "" if the page does not have the check. */
  private showCheck(event: CheckEvent): string {
    const item = this.root.querySelector<HTMLElement>(`.check[data-check="${CSS.escape(event.name)}"]`);
    if (!item) return "";
    const outcome = say(`check.${event.outcome}`);
    item.dataset.outcome = event.outcome;
    need(item, ".check-word").textContent = outcome;
    need(item, ".check-message").replaceChildren(...codeSpans(fill(event.message, event.values)));
    for (const side of ["got", "wanted"] as const) {
      const value = need(item, `.check-${side}`);
      this.show(value, event[side] !== null);
      need(value, "pre").textContent = event[side] ?? "";
    }
    return `${checkTitle(item)}: ${outcome}`;
  }

  /** One line about the whole: announced after a judgement, silent when the page is loaded. */
  private summarize(aloud = false): void {
    const all = this.checks;
    const { verdict } = this.body.dataset;
    if (!verdict) {
      this.end("", "plain");
      return;
    }
    const line =
      verdict === "fault" ? say("check.notJudged") : verdict === "lost" ? say("check.notFinished") : this.count();
    this.end(line, verdict === "passed" ? "good" : verdict === "failed" ? "bad" : "plain");
    if (!aloud) return;
    const first = all.find(({ dataset }) => dataset.outcome !== "passed");
    const why = first ? [checkTitle(first), need(first, ".check-message").textContent] : [];
    announce(`${this.cell.title}: ${line}`, ...why);
  }

  /** The judgement has ended, but only its results arrived, not the panel with the verdict. */
  private reportMissingPanel(): void {
    const line = joinSentences([this.count(), say("check.panelMissing")]);
    this.end(line, "bad");
    announce(`${this.cell.title}: ${line}`);
  }

  /** What the checks amount to, before the panel is here; a fault is for the panel to explain. */
  private sayCount(): void {
    const outcomes = this.checks.map(({ dataset }) => dataset.outcome);
    if (outcomes.includes("fault")) return;
    this.say(this.count(), outcomes.every((outcome) => outcome === "passed") ? "good" : "bad");
  }

  private get checks(): HTMLElement[] {
    return [...this.root.querySelectorAll<HTMLElement>(".check")];
  }

  private count(): string {
    const passed = this.checks.filter(({ dataset }) => dataset.outcome === "passed").length;
    return sayCount("check.summary", this.checks.length, { passed });
  }

  private end(line: string, tone: Tone): void {
    const stopButton = need(this.root, "[data-action=stop-check]");
    const held = document.activeElement === stopButton;
    this.root.removeAttribute("data-at-work");
    this.show(stopButton, false);
    need(this.root, "[data-action=check]").setAttribute("aria-disabled", "false");
    if (held) need(this.root, "[data-action=check]").focus();
    this.say(line, tone);
  }

  private say(line: string, tone: Tone): void {
    this.status.textContent = line;
    this.status.dataset.tone = tone;
  }

  private show(element: HTMLElement, shown: boolean): void {
    element.hidden = !shown;
  }

  private useTry(button: Element): void {
    const code = button.closest(".try")?.querySelector("[data-try-code]")?.textContent;
    if (code) this.cell.replaceCode(code);
  }
}

function checkTitle(item: HTMLElement): string {
  return need(item, ".check-name > span").textContent ?? "";
}
