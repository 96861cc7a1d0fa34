/**
 * A scrolling list of items. However long it is, the document contains only part of it: the start and the end, and
 * between them a line that shows how much is folded and offers everything as text.
 */

import { make } from "../../web/frontend/element";
import { sayCount } from "../../web/frontend/strings";
import type { Item } from "./transcript";

const HEAD = 100;
const TAIL = 1_500;
/** The tail is trimmed only once it has grown by this share, because trimming line by line would be slow. */
const SLACK = 1 / 3;
/** The share while the learner has scrolled away from the end. */
const SLACK_WHILE_READING = 2;
/** Items created per call; the next call continues. */
const PIECE = 150;
const NEAR_BOTTOM_PX = 24;
/** With more items than this, output counts as a log. */
const ROWS_OF_A_LOG = 20;

/** What a list needs from its output. */
export interface ListDelegate {
  make(item: Item): HTMLElement;
  /** Repaints the element of an item that has changed. Returns the element that replaces it. */
  remake(item: Item, old: HTMLElement): HTMLElement;
  /** The element of an item was removed from the document. */
  drop(element: HTMLElement | undefined): void;
  /** A button that downloads the whole output as text. */
  downloadButton(): HTMLElement;
  /** A label before an item, if any. */
  label?(item: Item): HTMLElement | null;
}

export class VirtualList {
  private nodes = new Map<Item, HTMLElement>();
  /** items[0, head) and items[tail, end) are in the document. */
  private head = 0;
  private tail = 0;
  private end = 0;
  private items: Item[] = [];
  private sticking = true;
  private unsettled = false;
  private readonly headBox = make("div.rows");
  private readonly fold = make("div.fold", { hidden: true });
  private readonly tailBox = make("div.rows");

  /** `most` items at the end stay in the document. */
  constructor(
    private readonly box: HTMLElement,
    private readonly delegate: ListDelegate,
    private readonly most = TAIL,
  ) {
    this.box.addEventListener("scroll", () => {
      this.sticking = box.scrollTop + box.clientHeight >= box.scrollHeight - NEAR_BOTTOM_PX;
    });
  }

  /** Removes everything from the document; the next list is shown from its end. */
  empty(): void {
    for (const node of this.nodes.values()) this.delegate.drop(node);
    this.nodes.clear();
    this.headBox.replaceChildren();
    this.tailBox.replaceChildren();
    this.box.replaceChildren(this.headBox, this.fold, this.tailBox);
    this.head = this.tail = this.end = 0;
    this.fold.hidden = true;
    this.fold.replaceChildren();
    delete this.fold.dataset.count;
    this.box.classList.add("empty");
  }

  /** Follows the end again from now on. */
  stick(): void {
    this.sticking = true;
  }

  /**
   * Paints the list, which has only grown since the last call, except for the items in `touched`. Returns false if some
   * of it is left for the next call. Call `settle` afterwards.
   */
  paint(items: Item[], touched: Iterable<Item>): boolean {
    this.items = items;
    let changed = items.length > this.end;
    for (const item of touched) changed = this.repaint(item) || changed;
    if (!changed) return true;
    this.grow();
    this.cut();
    this.box.classList.toggle("empty", items.length === 0);
    this.unsettled = true;
    return this.end === items.length;
  }

  /** Measures what was painted, and scrolls to the end. Separate from painting, so that lists share one layout. */
  settle(): void {
    if (!this.unsettled) return;
    this.unsettled = false;
    this.makeScrollable();
    if (this.sticking && this.mostlyText()) this.box.scrollTop = this.box.scrollHeight;
  }

  /** Whether to follow the end, as in a log; pictures are read from the top. */
  private mostlyText(): boolean {
    return this.end > ROWS_OF_A_LOG;
  }

  private grow(): void {
    const { items } = this;
    const top = Math.min(HEAD, items.length);
    for (; this.head < top; this.head++) this.headBox.append(this.node(items[this.head] as Item));
    this.end = Math.max(this.end, this.head);
    if (!this.tailBox.childElementCount) this.tail = this.end;
    if (items.length - this.end > this.most) {
      this.forget(this.tail, this.end);
      this.tailBox.replaceChildren();
      this.tail = this.end = items.length - this.most;
    }
    const fresh = items.slice(this.end, this.end + PIECE).map((item) => this.node(item));
    this.tailBox.append(...fresh);
    this.end += fresh.length;
  }

  private cut(): void {
    const most = this.most * (1 + (this.sticking ? SLACK : SLACK_WHILE_READING));
    if (this.end - this.tail > most) {
      const from = this.end - this.most;
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

  /** Shows the line of the fold. Returns the element for its text. */
  private offerDownload(): HTMLElement {
    this.fold.hidden = false;
    if (!this.fold.childElementCount) this.fold.append(make("span"), this.delegate.downloadButton());
    return this.fold.firstElementChild as HTMLElement;
  }

  private forget(from: number, to: number): void {
    for (const item of this.items.slice(from, to)) {
      this.delegate.drop(this.nodes.get(item));
      this.nodes.delete(item);
    }
  }

  /** The element of an item in the list. */
  private node(item: Item): HTMLElement {
    const made = this.delegate.make(item);
    this.nodes.set(item, made);
    if (item.kind === "row" && item.rest) this.offerDownload();
    const label = this.delegate.label?.(item);
    return label ? make("div.labelled", {}, label, made) : made;
  }

  private repaint(item: Item): boolean {
    const old = this.nodes.get(item);
    if (!old) return false;
    this.nodes.set(item, this.delegate.remake(item, old));
    if (item.kind === "row" && item.rest) this.offerDownload();
    return true;
  }

  /** A box that scrolls must be focusable with the keyboard; one that does not scroll must not be a tab stop. */
  private makeScrollable(): void {
    const scrolls =
      this.box.scrollHeight > this.box.clientHeight + 1 || this.box.scrollWidth > this.box.clientWidth + 1;
    if (scrolls === this.box.hasAttribute("tabindex")) return;
    if (scrolls) this.box.tabIndex = 0;
    else this.box.removeAttribute("tabindex");
  }
}
