/**
 * A run's output on the page: a single list or, if workers or replicas write, lanes side by side. The script for lanes
 * is loaded when the first one appears.
 */

import { offer } from "../../web/frontend/download";
import { make } from "../../web/frontend/element";
import { formatSize } from "../../web/frontend/format-units";
import { LruSet } from "../../web/frontend/lru-set";
import { fill, language, localizedNumber, say, sayCount, type Values } from "../../web/frontend/strings";
import { errorHints, NetworkError, ResponseError } from "./api";
import { laneColor } from "./lane-color";
import type { LaneGrid } from "./lanes";
import { wayThere } from "./other-machine";
import type { Frame, Notice, Run } from "./protocol";
import { renderRow } from "./render-rows";
import { quieten, showDisplay } from "./rich-output";
import { TimeSlice } from "./time-slice";
import { type FramePlace, showTraceback } from "./traceback";
import { hintInLane, type Item, laneOf, type Transcript } from "./transcript";
import { type ListDelegate, VirtualList } from "./virtual-list";

/** At most this many HTML documents are loaded at once; earlier ones become links. */
const LIVE_FRAMES = 20;
/** While output arrives fast, painting takes at most one part in this many of the time. */
const REST = 3;
const FRAME_MS = 16;
/** Characters of a lane's name that fit before a line. */
const SHORT_NAME = 10;

export class Output implements ListDelegate {
  private transcript: Transcript | null = null;
  private run = "";
  private topology = "";
  private readonly frames = new LruSet<HTMLElement>(LIVE_FRAMES);
  private readonly list: VirtualList;
  private lanes: LaneGrid | null = null;
  private loading: Promise<void> | null = null;
  /** The script for lanes could not be loaded, so a single list is shown. */
  private laneless = false;
  private clearings = 0;
  private painting = 0;
  private resting = 0;
  private restedAt = 0;

  /** `bar` is the line below the output, where the choice between lanes and a single list appears. */
  constructor(
    private readonly box: HTMLElement,
    private readonly bar: HTMLElement,
    private readonly cell: string,
    private readonly fileName: string,
    private readonly placeOf: (frame: Frame) => FramePlace | null = () => null,
  ) {
    this.list = new VirtualList(box, this);
    this.list.empty();
  }

  /** Shows this transcript from now on. */
  show(transcript: Transcript, run: Run): void {
    this.transcript = transcript;
    this.run = run.id;
    this.topology = run.topology;
    this.list.stick();
    this.lanes?.forget();
    this.lanes = null;
    this.empty();
    this.changed();
  }

  /** Paints in the next frame, or later if the last paint took long. */
  changed(): void {
    if (this.painting || this.resting) return;
    const rest = this.restedAt - performance.now();
    if (rest > FRAME_MS) {
      this.resting = window.setTimeout(() => {
        this.resting = 0;
        this.changed();
      }, rest);
      return;
    }
    this.painting = requestAnimationFrame(() => {
      this.painting = 0;
      this.paint();
    });
  }

  /** Paints everything in the next frames, so that the end is never shown before the last line. */
  async paintAll(): Promise<void> {
    const pace = new TimeSlice();
    while (this.painting || this.resting || this.loading) {
      cancelAnimationFrame(this.painting);
      window.clearTimeout(this.resting);
      this.painting = this.resting = 0;
      this.paint();
      await this.loading; // the first line of a lane loads the script for lanes
      if (this.painting || this.resting) await pace.pause();
    }
  }

  /** What explains an error in a lane, or a failure that still waits, where it may be out of sight; empty if nothing. */
  async hint(): Promise<string> {
    const notice = hintInLane(this.transcript?.items ?? []);
    if (!notice) return "";
    const words = noticeText(notice, say);
    return words === notice.text ? translate(notice) : words;
  }

  private empty(): void {
    this.frames.clear();
    this.box.classList.remove("long-names");
    this.list.empty();
    this.lanes?.empty();
  }

  private paint(): void {
    const transcript = this.transcript;
    if (!transcript) return;
    if (transcript.clearings !== this.clearings) {
      this.clearings = transcript.clearings;
      this.empty();
    }
    if (transcript.inLanes && !this.lanes && !this.laneless) {
      this.loading ??= this.makeLanes(transcript);
      return;
    }
    const touched = transcript.takeTouched();
    const since = performance.now();
    const whole = (this.lanes?.shown ? this.lanes : this.list).paint(transcript.items, touched);
    this.list.settle();
    const now = performance.now();
    this.restedAt = now + (now - since) * REST;
    this.box.classList.toggle("empty", transcript.items.length === 0);
    if (!whole) this.changed();
  }

  private async makeLanes(transcript: Transcript): Promise<void> {
    try {
      const { LaneGrid } = await import("./lanes");
      if (this.transcript === transcript) {
        this.lanes = new LaneGrid(this.box, this.bar, this, this.topology, transcript.waitsFor, () =>
          this.repaintAll(),
        );
      }
    } catch {
      this.laneless = true;
    }
    this.loading = null;
    this.repaintAll();
  }

  private repaintAll(): void {
    this.empty();
    this.changed();
  }

  // --- delegate of the lists ---------------------------------------------------------------------------------------

  make(item: Item): HTMLElement {
    const made = this.draw(item);
    const old = made.matches(".html") ? this.frames.add(made) : undefined;
    if (old) quieten(old);
    return made;
  }

  remake(item: Item, old: HTMLElement): HTMLElement {
    if (item.kind === "row") return renderRow(item, old);
    this.frames.drop(old);
    const fresh = this.make(item);
    old.replaceWith(fresh);
    return fresh;
  }

  drop(element: HTMLElement | undefined): void {
    this.frames.drop(element);
  }

  label(item: Item): HTMLElement | null {
    const lane = laneOf(item);
    if (lane === null) return null;
    if (lane.length > SHORT_NAME) this.box.classList.add("long-names");
    return make(`b.lane-name.${laneColor(lane, this.topology)}`, { lang: "en" }, lane);
  }

  downloadButton(): HTMLElement {
    const button = make("button.quiet", { type: "button" }, say("output.download"));
    button.addEventListener("click", () => offer(this.transcript?.lines() ?? [], "text/plain", this.fileName));
    return button;
  }

  private draw(item: Item): HTMLElement {
    if (item.kind === "row") return renderRow(item);
    if (item.kind === "display") return showDisplay(item, this.run, this.cell);
    if (item.kind === "error") return showTraceback(item.event, this.placeOf);
    const often = item.count > 1 && ` ${say("output.times", { count: localizedNumber(item.count) })}`;
    const words = make("span", {}, noticeText(item.event, say));
    if (words.textContent === item.event.text) {
      void translate(item.event).then((text) => {
        words.textContent = text;
      });
    }
    const way = wayThere(item.event.code, this.box);
    return make("p.notice", {}, make("b", {}, "Lockstep"), " ", words, way && " ", way, often);
  }
}

let hints: Promise<Record<string, string>> | null = null;

/** A hint on an error in the page's language. Those are not in the page, so they are loaded. */
async function translate(notice: Notice): Promise<string> {
  if (language() === "en") return notice.text; // the runner's text is English
  hints ??= errorHints();
  try {
    const known = await hints;
    return noticeText(notice, (key, values) => {
      const sentence = known[notice.code];
      return sentence === undefined ? key : fill(sentence, values);
    });
  } catch (error) {
    hints = null; // the next one tries again
    if (!(error instanceof ResponseError || error instanceof NetworkError)) throw error;
    return notice.text;
  }
}

/** A notice as `said`, if that knows its key, otherwise in the runner's English. */
function noticeText(notice: Notice, said: (key: string, values: Values) => string): string {
  const { code, text, values, limit } = notice;
  const key = `notice.${code}`;
  const number = limit?.unit === "bytes" ? formatSize : (value: number): string => localizedNumber(value, 1);
  const shown = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === "number" ? number(value) : value]),
  );
  if (typeof values.days === "number") shown.age = sayCount("output.days", values.days);
  if (values.reason) shown.why = say(`failure.${values.reason}`);
  const ours = said(key, shown);
  return ours === key ? text : ours;
}
