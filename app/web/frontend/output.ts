/**
 * A run's output on the page. However long it gets, the document holds a bounded part of it: the beginning and the
 * end, and between them a line that says how much is folded and offers the whole as text.
 */

import { make } from "./element";
import { size } from "./figures";
import { Latest } from "./latest";
import { paintRow } from "./paint";
import type { Notice } from "./protocol";
import { quieten, showDisplay } from "./rich";
import { figure, say, sayCount } from "./strings";
import { showTraceback } from "./traceback";
import type { Item, Transcript } from "./transcript";

const HEAD = 100;
const TAIL = 1_500;
/** The tail is cut only once it has grown by this much: cutting line by line would be slow. */
const SLACK = 500;
/** So many documents of HTML are alive at once; the earlier ones are links. */
const LIVE_FRAMES = 20;
const NEAR_BOTTOM_PX = 24;
/** More items than this are a log. */
const ROWS_OF_A_LOG = 20;

export class Output {
  private transcript: Transcript | null = null;
  private run = "";
  private nodes = new Map<Item, HTMLElement>();
  private readonly frames = new Latest<HTMLElement>(LIVE_FRAMES);
  /** Items[0, head) and Items[tail, end) are in the document. */
  private head = 0;
  private tail = 0;
  private end = 0;
  private clearings = 0;
  private sticking = true;
  private painting = 0;
  private readonly headBox = make("div.rows");
  private readonly fold = make("div.fold", { hidden: true });
  private readonly tailBox = make("div.rows");

  constructor(
    private readonly box: HTMLElement,
    private readonly cell: string,
    private readonly fileName: string,
  ) {
    this.box.append(this.headBox, this.fold, this.tailBox);
    this.box.addEventListener("scroll", () => {
      this.sticking = box.scrollTop + box.clientHeight >= box.scrollHeight - NEAR_BOTTOM_PX;
    });
  }

  /** Shows this transcript from now on. */
  show(transcript: Transcript, run: string): void {
    this.transcript = transcript;
    this.run = run;
    this.sticking = true;
    this.empty();
    this.changed();
  }

  /** Paints with the next frame. */
  changed(): void {
    this.painting ||= requestAnimationFrame(() => {
      this.painting = 0;
      this.paint();
    });
  }

  /** Paints what waits for the next frame: an end is never shown before the last line. */
  paintNow(): void {
    if (!this.painting) return;
    cancelAnimationFrame(this.painting);
    this.painting = 0;
    this.paint();
  }

  private empty(): void {
    this.nodes.clear();
    this.frames.clear();
    this.headBox.replaceChildren();
    this.tailBox.replaceChildren();
    this.head = this.tail = this.end = 0;
    this.fold.hidden = true;
    this.fold.replaceChildren();
    delete this.fold.dataset.count;
  }

  private paint(): void {
    const transcript = this.transcript;
    if (!transcript) return;
    if (transcript.clearings !== this.clearings) {
      this.clearings = transcript.clearings;
      this.empty();
    }
    for (const item of transcript.takeTouched()) this.repaint(item);
    this.grow(transcript.items);
    this.cut();
    this.box.classList.toggle("empty", transcript.items.length === 0);
    this.makeScrollable();
    if (this.sticking && this.mostlyText()) this.box.scrollTop = this.box.scrollHeight;
  }

  /** A log is followed to its end; a page of pictures is read from its top. */
  private mostlyText(): boolean {
    return this.end > ROWS_OF_A_LOG;
  }

  private grow(items: Item[]): void {
    const top = Math.min(HEAD, items.length);
    for (; this.head < top; this.head++) this.headBox.append(this.node(items[this.head] as Item));
    this.end = Math.max(this.end, this.head);
    if (!this.tailBox.childElementCount) this.tail = this.end;
    if (items.length - this.end > TAIL) {
      this.forget(this.tail, this.end);
      this.tailBox.replaceChildren();
      this.tail = this.end = items.length - TAIL;
    }
    const fresh = items.slice(this.end).map((item) => this.node(item));
    this.tailBox.append(...fresh);
    this.end = items.length;
  }

  private cut(): void {
    const most = TAIL + (this.sticking ? SLACK : 6 * SLACK);
    if (this.end - this.tail > most) {
      const from = this.end - TAIL;
      this.forget(this.tail, from);
      const range = document.createRange();
      range.setStart(this.tailBox, 0);
      range.setEnd(this.tailBox, from - this.tail);
      range.deleteContents();
      this.tail = from;
    }
    const folded = this.tail - this.head;
    if (folded <= 0 || this.fold.dataset.count === String(folded)) return;
    this.fold.dataset.count = String(folded);
    this.offerDownload().textContent = sayCount("output.folded", folded);
  }

  /** Shows the line of the fold; the answer is the place of its words. */
  private offerDownload(): HTMLElement {
    this.fold.hidden = false;
    if (!this.fold.childElementCount) this.fold.append(make("span"), this.downloadButton());
    return this.fold.firstElementChild as HTMLElement;
  }

  private forget(from: number, to: number): void {
    for (const item of this.transcript?.items.slice(from, to) ?? []) {
      this.frames.drop(this.nodes.get(item));
      this.nodes.delete(item);
    }
  }

  private node(item: Item): HTMLElement {
    const made = this.make(item);
    this.nodes.set(item, made);
    if (item.kind === "row" && item.rest) this.offerDownload();
    const old = made.matches(".html") ? this.frames.add(made) : undefined;
    if (old) quieten(old);
    return made;
  }

  private make(item: Item): HTMLElement {
    if (item.kind === "row") return paintRow(item);
    if (item.kind === "display") return showDisplay(item, this.run, this.cell);
    if (item.kind === "error") return showTraceback(item.event);
    return make("p.notice", {}, make("b", {}, "Lockstep"), ` ${noticeText(item.event)}`);
  }

  private repaint(item: Item): void {
    const old = this.nodes.get(item);
    if (!old) return;
    if (item.kind === "row") {
      paintRow(item, old);
      if (item.rest) this.offerDownload();
    } else {
      this.frames.drop(old);
      const fresh = this.node(item);
      old.replaceWith(fresh);
    }
  }

  /** A box that scrolls must be reachable by keyboard; one that does not must not be a stop. */
  private makeScrollable(): void {
    const scrolls = this.box.scrollHeight > this.box.clientHeight + 1 || this.box.scrollWidth > this.box.clientWidth + 1;
    if (scrolls === this.box.hasAttribute("tabindex")) return;
    if (scrolls) this.box.tabIndex = 0;
    else this.box.removeAttribute("tabindex");
  }

  private downloadButton(): HTMLElement {
    const button = make("button.quiet", { type: "button" }, say("output.download"));
    button.addEventListener("click", () => {
      const url = URL.createObjectURL(new Blob(this.transcript?.lines() ?? [], { type: "text/plain" }));
      const link = make<HTMLAnchorElement>("a", { href: url, download: this.fileName });
      link.click();
      window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
    });
    return button;
  }
}

/** A notice in the page's language where we have its words, in the runner's English otherwise. */
function noticeText({ code, text, values, limit }: Notice): string {
  const key = `notice.${code}`;
  const number = limit?.unit === "bytes" ? size : (value: number): string => figure(value, 1);
  const shown = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === "number" ? number(value) : value]),
  );
  if (values.reason) shown.why = say(`failure.${values.reason}`);
  const ours = say(key, shown);
  return ours === key ? text : ours;
}
