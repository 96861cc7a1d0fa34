/**
 * Lanes: the output of each worker or replica, side by side. A separate chunk.
 *
 * Each lane is a labeled group that can be collapsed and scrolls by itself. The choice between lanes and a single list
 * in order of arrival applies to all cells and is stored in this browser.
 */

import "./lane-styles";

import { make } from "../../web/frontend/element";
import { say, sayCount } from "../../web/frontend/strings";
import { laneColor } from "./lane-color";
import { LaneLayout, OTHER_LANES, sortLanes } from "./lane-layout";
import type { Item } from "./transcript";
import { type ListDelegate, VirtualList } from "./virtual-list";

type View = "lanes" | "list";

const VIEW_KEY = "lockstep:lanes";
const NARROW = "(max-width: 46rem)";
/** Items at the end of a lane that stay in the document. Few, because each of several lanes shows only some lines. */
const MOST = 300;
/** Lanes are painted in turns: after this time, the others wait for the next call. */
const SLICE_MS = 8;

/** The grids to update when another view is chosen. */
const grids = new Set<LaneGrid>();
let view: View = remembered();
let switches = 0;

interface Lane {
  root: HTMLDetailsElement;
  count: HTMLElement;
  wait: HTMLElement;
  sheet: VirtualList;
}

export class LaneGrid {
  private layout = new LaneLayout();
  private readonly root = make("div.lanes-view");
  private readonly grid = make("div.lane-grid", { role: "group", "aria-label": say("lanes.title") });
  private readonly above: VirtualList;
  private readonly below: VirtualList;
  private readonly lanes = new Map<string, Lane>();
  private readonly switch: HTMLFieldSetElement;
  /** Lanes that the learner opened or collapsed. By default all are open; on a phone, only the first. */
  private readonly turned = new Map<string, boolean>();
  private readonly narrow = window.matchMedia(NARROW);
  /** The next part to paint, in order; the items repainted in this round; and those for the next one. */
  private turn = 0;
  private round = new Set<Item>();
  private next = new Set<Item>();

  constructor(
    private readonly box: HTMLElement,
    bar: HTMLElement,
    private readonly delegate: ListDelegate,
    private readonly topology: string,
    private readonly waitsFor: ReadonlyMap<string, string>,
    private readonly chosen: () => void,
  ) {
    const [above, below] = [make("div.stretch"), make("div.stretch")];
    this.above = new VirtualList(above, this.bare(), MOST);
    this.below = new VirtualList(below, this.bare(), MOST);
    this.root.append(above, this.grid, below);
    this.switch = makeSwitch();
    bar.append(this.switch);
    grids.add(this);
  }

  /** Whether lanes are shown instead of a single list. */
  get shown(): boolean {
    return view === "lanes";
  }

  /** Removes the lanes from the page. */
  forget(): void {
    grids.delete(this);
    this.switch.remove();
    this.box.classList.remove("in-lanes");
  }

  /** Applies the chosen view. */
  follow(): void {
    for (const radio of this.switch.querySelectorAll("input")) radio.checked = radio.value === view;
    this.chosen();
  }

  /** Starts over; if lanes are shown, they replace the list. */
  empty(): void {
    this.layout = new LaneLayout();
    this.lanes.clear();
    this.turn = 0;
    this.round.clear();
    this.next.clear();
    this.grid.replaceChildren();
    this.above.empty();
    this.below.empty();
    this.box.classList.toggle("in-lanes", this.shown);
    if (!this.shown) return;
    this.box.replaceChildren(this.root);
    this.box.removeAttribute("tabindex");
  }

  /** Paints new items within a short time; returns false if some are left for the next call. */
  paint(items: Item[], touched: Set<Item>): boolean {
    const since = performance.now();
    this.layout.take(items);
    for (const name of this.layout.lanes.keys()) if (!this.lanes.has(name)) this.add(name);
    for (const item of touched) this.next.add(item);
    if (this.turn === 0) [this.round, this.next] = [this.next, new Set()];
    const parts = this.parts();
    const painted: VirtualList[] = [];
    let whole = true;
    for (; this.turn < parts.length && performance.now() - since < SLICE_MS; this.turn++) {
      const [sheet, mine] = parts[this.turn] as [VirtualList, Item[]];
      whole = sheet.paint(mine, this.round) && whole;
      painted.push(sheet);
    }
    for (const sheet of painted) sheet.settle();
    if (this.turn < parts.length) return false;
    this.turn = 0;
    return whole && painted.length === parts.length && this.next.size === 0;
  }

  private parts(): [VirtualList, Item[]][] {
    const lanes = [...this.lanes].map(([name, { sheet, count, wait }]): [VirtualList, Item[]] => {
      const mine = this.layout.lanes.get(name) ?? [];
      this.showWait(wait, this.waitsFor.get(name) ?? "");
      const words = sayCount("lanes.lines", mine.length);
      if (count.textContent !== words) count.textContent = words;
      return [sheet, mine];
    });
    return [[this.above, this.layout.above], ...lanes, [this.below, this.layout.below]];
  }

  /** Shows, in its color, the process that a lane waits for. */
  private showWait(wait: HTMLElement, other: string): void {
    if ((wait.dataset.other ?? "") === other) return;
    wait.dataset.other = other;
    wait.className = `lane-wait ${other && laneColor(other, this.topology)}`;
    wait.textContent = other && say("lanes.waitsFor", { task: other });
  }

  private add(name: string): void {
    const title =
      name === OTHER_LANES ? make("b.lane-name", {}, say("lanes.others")) : make("b.lane-name", { lang: "en" }, name);
    const count = make("span.lane-count");
    const wait = make("span.lane-wait");
    const box = make("div.lane-box");
    const root = make<HTMLDetailsElement>(
      `details.run-lane.${laneColor(name, this.topology)}`,
      { role: "group", "aria-label": title.textContent ?? "" },
      make("summary", {}, title, count, wait),
      box,
    );
    root.firstElementChild?.addEventListener("click", () => this.turned.set(name, !root.open));
    const sheet = new VirtualList(box, name === OTHER_LANES ? this.delegate : this.bare(), MOST);
    sheet.empty();
    this.lanes.set(name, { root, count, wait, sheet });
    const names = sortLanes(this.lanes.keys());
    const next = this.lanes.get(names[names.indexOf(name) + 1] ?? "");
    this.grid.insertBefore(root, next?.root ?? null); // do not move the others, which would reset their scroll position
    for (const [each, lane] of this.lanes)
      lane.root.open = this.turned.get(each) ?? (!this.narrow.matches || each === names[0]);
  }

  /** The delegate without labels: the lane itself has the name. */
  private bare(): ListDelegate {
    const { delegate } = this;
    return {
      make: (item) => delegate.make(item),
      remake: (item, old) => delegate.remake(item, old),
      drop: (element) => delegate.drop(element),
      downloadButton: () => delegate.downloadButton(),
    };
  }
}

function makeSwitch(): HTMLFieldSetElement {
  const name = `lanes-${++switches}`;
  const choice = (value: View, words: string): HTMLElement => {
    const radio = make<HTMLInputElement>("input", { type: "radio", name, value, checked: value === view });
    radio.addEventListener("change", () => choose(value));
    return make("label", {}, radio, make("span", {}, words));
  };
  const choices = [choice("lanes", say("lanes.lanes")), choice("list", say("lanes.list"))];
  const legend = make("legend.visually-hidden", {}, say("lanes.show"));
  return make<HTMLFieldSetElement>("fieldset.lane-switch", {}, legend, ...choices);
}

function choose(value: View): void {
  view = value;
  try {
    window.localStorage.setItem(VIEW_KEY, value);
  } catch {
    // Storage is denied: the choice lasts as long as the page.
  }
  for (const grid of grids) grid.follow();
}

function remembered(): View {
  try {
    return window.localStorage.getItem(VIEW_KEY) === "list" ? "list" : "lanes";
  } catch {
    return "lanes";
  }
}
