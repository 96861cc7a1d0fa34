/**
 * The chart of a run: small panels, one per scale, with a reading cursor and a table. Trainings are drawn on common axes,
 * so that they can be compared; only those counted in steps and those counted in epochs are apart.
 *
 * It is redrawn from the data a few times a second at most; of thousands of points, only those are drawn that make a
 * difference in a column of pixels. Nothing is animated, so there is no motion to reduce.
 */

import "./visualization-styles";

import { announce } from "../../web/frontend/announce";
import { offer } from "../../web/frontend/download";
import { make } from "../../web/frontend/element";
import { formatNumber } from "../../web/frontend/format-number";
import { localizedNumber, say, sayCount } from "../../web/frontend/strings";
import { numbersTable } from "../../web/frontend/table";
import { PanelView, trainingTitle } from "./chart-panel";
import type { Metric } from "./protocol";
import {
  asCsv,
  before,
  type Line,
  laneEnd,
  MOST_PANELS,
  measure,
  panelsOf,
  Series,
  spread,
  type Training,
} from "./series";

/** The minimum time between two paints, and between two announcements. */
const REST_MS = 200;
const SILENCE_MS = 12_000;
/** If painting is slow, it takes at most one part in this many of the time. */
const REST = 4;
const TABLE_REST_MS = 2_000;
const MOST_ROWS = 60;
/** At most this many values are announced at once. */
const MOST_SPOKEN = 6;

export class Chart {
  readonly box: HTMLElement;
  private readonly series = new Series();
  private readonly views = new Map<Training["unit"], GroupView>();
  private readonly earlier = make("p.chart-remark", { hidden: true });
  private waiting = 0;
  private rest = REST_MS;
  private saidAt = performance.now();
  private saidEpoch: Metric | null = null;

  constructor(
    private readonly metrics: readonly Metric[],
    private readonly topology: string,
    private readonly cell: string,
    private readonly name: string,
  ) {
    this.box = make("div.chart", { role: "group", "aria-label": say("chart.label", { cell }) }, this.earlier);
    this.saidEpoch = metrics.findLast((event) => event.per === "epoch") ?? null;
    this.paint();
    let width = 0;
    new ResizeObserver(() => {
      if (this.box.clientWidth === width) return;
      width = this.box.clientWidth;
      this.paint();
    }).observe(this.box);
  }

  changed(): void {
    this.waiting ||= window.setTimeout(() => {
      this.waiting = 0;
      const since = performance.now();
      this.paint();
      this.tellEpoch();
      this.rest = Math.max(REST_MS, (performance.now() - since) * REST);
    }, this.rest);
  }

  /** All metrics have arrived. */
  ended(restored: boolean): void {
    window.clearTimeout(this.waiting);
    this.waiting = 0;
    if (!restored) this.saidEpoch = this.metrics.findLast((event) => event.per === "epoch") ?? null;
    this.paint();
    for (const view of this.views.values()) view.settle();
  }

  lastWords(): string {
    const training = this.series.trainingRuns.at(-1);
    if (!training) return "";
    const lines = [...training.lines.values()];
    return values(lines.slice(0, MOST_SPOKEN), Math.max(...lines.map(laneEnd)), training.unit);
  }

  private paint(): void {
    this.series.read(this.metrics);
    const { trainingRuns, begun } = this.series;
    for (const unit of ["step", "epoch"] as const) {
      const trainings = trainingRuns.filter((training) => training.unit === unit);
      const view = this.views.get(unit) ?? new GroupView(unit, this.topology, this.cell, this.name);
      if (trainings.length) {
        if (!view.box.isConnected) this.box.append(view.box);
        this.views.set(unit, view);
        view.paint(trainings);
      } else {
        view.box.remove();
        this.views.delete(unit);
      }
    }
    const gone = begun - trainingRuns.length;
    this.earlier.hidden = gone === 0;
    if (gone) this.earlier.textContent = sayCount("chart.earlier", gone);
  }

  /** Announces an epoch's metrics, but not every epoch if they are short. */
  private tellEpoch(): void {
    const last = this.metrics.findLast((event) => event.per === "epoch");
    if (!last || last === this.saidEpoch || performance.now() - this.saidAt < SILENCE_MS) return;
    this.saidEpoch = last;
    this.saidAt = performance.now();
    const spoken = Object.entries(last.values).slice(0, MOST_SPOKEN);
    const words = spoken.map(([name, value]) => `${name} ${formatNumber(measure(value))}`).join(", ");
    announce(say("chart.epochDone", { epoch: localizedNumber(last.step), values: words }));
  }
}

/** Trainings with common axes: their panels, reading cursor and table. */
class GroupView {
  readonly box: HTMLElement;
  private readonly panels = make("div.panels");
  private readonly views: PanelView[] = [];
  private readonly more = make("p.chart-remark", { hidden: true });
  private readonly slider = make<HTMLInputElement>("input", { type: "range", min: 0, max: 0, value: 0 });
  private readonly handle: HTMLElement;
  private readonly words = make("p.chart-reading");
  private readonly numbers: HTMLDetailsElement;
  private tableAt = 0;
  /** The cursor's position on the axis; null means the end, which moves as metrics arrive. */
  private head: number | null = null;
  private pinned = false;
  private trainings: readonly Training[] = [];

  constructor(
    private readonly unit: Training["unit"],
    private readonly topology: string,
    private readonly cell: string,
    private readonly name: string,
  ) {
    this.handle = make("label.chart-head", {}, make("span", {}, say("chart.readAt")), this.slider);
    this.numbers = make<HTMLDetailsElement>(
      "details.numbers",
      {},
      make("summary", {}, say("chart.numbers")),
      make("div"),
    );
    this.box = make(
      "section.training",
      {},
      this.panels,
      this.more,
      make("div.chart-foot", {}, this.handle, this.words),
      this.numbers,
    );
    this.slider.addEventListener("input", () => {
      const { xs } = this.lead();
      const at = Number(this.slider.value);
      this.pinned = at < xs.length - 1;
      this.read(this.pinned ? (xs[at] as number) : null);
    });
    this.numbers.addEventListener("toggle", () => {
      if (this.numbers.open) this.fillTable();
    });
  }

  paint(trainings: readonly Training[]): void {
    this.trainings = trainings;
    const panels = panelsOf(trainings);
    const shown = panels.slice(0, MOST_PANELS);
    while (this.views.length > shown.length) this.views.pop()?.box.remove();
    while (this.views.length < shown.length) {
      const view = new PanelView(this.topology, (x) => this.point(x));
      this.views.push(view);
      this.panels.append(view.box);
    }
    this.more.hidden = panels.length === shown.length;
    this.more.textContent = sayCount("chart.more", panels.length - shown.length);
    for (const [i, panel] of shown.entries()) this.views[i]?.paint(panel, trainings, this.head);
    this.tell();
    if (this.numbers.open && performance.now() - this.tableAt > TABLE_REST_MS) this.fillTable();
  }

  /** No more metrics follow, so the table can be completed. */
  settle(): void {
    if (this.numbers.open) this.fillTable();
  }

  /** Moves the cursor to the pointer; outside the plot, it returns to where it was. */
  private point(x: number | null): void {
    if (x === null) {
      this.read(this.pinned ? this.head : null);
      return;
    }
    const { xs } = this.lead();
    const at = before(xs, x);
    const [low, high] = [xs[Math.max(0, at)] as number, xs[Math.min(xs.length - 1, at + 1)] as number];
    this.pinned = false;
    this.read(x - low < high - x ? low : high);
  }

  private read(x: number | null): void {
    this.head = x;
    for (const view of this.views) view.read(x);
    this.tell();
  }

  private tell(): void {
    const { xs } = this.lead();
    const at = this.head === null ? xs.length - 1 : before(xs, this.head);
    this.handle.hidden = xs.length < 2;
    this.slider.max = String(Math.max(0, xs.length - 1));
    this.slider.value = String(at);
    const x = this.head ?? (xs.at(-1) as number);
    const each = this.trainings.map((training) => {
      const read = values([...training.lines.values()], x, this.unit);
      return read && this.trainings.length > 1 ? `${trainingTitle(training)}: ${read}` : read;
    });
    const text = say("chart.reading", { place: place(x, this.unit), values: each.filter(Boolean).join("; ") });
    if (this.words.textContent === text) return;
    this.words.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }

  /** The positions where the cursor stops: those of the line with the most points. */
  private lead(): { xs: readonly number[] } {
    const all = this.trainings.flatMap((training) => [...training.lines.values()]);
    const lines = all.filter((line) => line.unit === this.unit);
    return lines.reduce((most, line) => (line.xs.length > most.xs.length ? line : most), lines[0] ?? { xs: [0] });
  }

  private fillTable(): void {
    this.tableAt = performance.now();
    const events = this.trainings.flatMap((training) => training.events.map((event) => ({ event, training })));
    const rows = spread(events, MOST_ROWS);
    const columns = [...new Set(this.trainings.flatMap(({ lines }) => [...lines.values()].map((line) => line.name)))];
    const lanes = events.some(({ event }) => event.lane);
    const several = this.trainings.length > 1;
    const remark =
      rows.length < events.length
        ? say("chart.someRows", { shown: localizedNumber(rows.length), all: localizedNumber(events.length) })
        : "";
    const table = numbersTable(
      [say("chart.numbersOf", { cell: this.cell }), remark].filter(Boolean).join(" · "),
      [
        say("chart.when"),
        ...(several ? [say("chart.trainings")] : []),
        ...(lanes ? [say("chart.lane")] : []),
        ...columns,
      ],
      rows.map(({ event, training }) => [
        place(event.step, event.per),
        ...(several ? [trainingTitle(training)] : []),
        ...(lanes ? [event.lane ?? ""] : []),
        ...columns.map((name) =>
          name in event.values ? formatNumber(measure(event.values[name] as Metric["values"][string])) : "",
        ),
      ]),
    );
    const button = make("button.quiet", { type: "button" }, say("chart.download"));
    button.addEventListener("click", () =>
      offer([asCsv(this.trainings, trainingTitle)], "text/csv", `${this.name}-${this.unit}s.csv`),
    );
    const hadFocus = this.numbers.lastElementChild?.contains(document.activeElement) ?? false;
    this.numbers.lastElementChild?.replaceChildren(table, button);
    if (hadFocus) button.focus();
  }
}

function place(x: number, unit: "step" | "epoch"): string {
  return unit === "step"
    ? say("chart.step", { step: localizedNumber(x) })
    : say("chart.epoch", { epoch: localizedNumber(x) });
}

/** The values at `x`, such as "loss 0.41, val_loss 0.45"; of a lane that ended before, the last, and where it was. */
function values(lines: readonly Line[], x: number, unit: "step" | "epoch"): string {
  return lines
    .flatMap((line) => {
      const places = line.training.placed(line);
      const at = before(places, x);
      if (at < 0) return [];
      const value = `${[line.lane, line.name].filter(Boolean).join(" ")} ${formatNumber(line.ys[at] as number)}`;
      return laneEnd(line) < x ? [`${value} (${place(places[at] as number, unit)})`] : [value];
    })
    .join(", ");
}
