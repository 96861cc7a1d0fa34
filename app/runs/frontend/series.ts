/**
 * The metrics of a run as training runs, panels and lines, built from metric events one by one. Pure.
 *
 * A new training starts when its model has another name, or when the steps of a lane go backward, because `fit` was
 * called again. Lines with the same scale share a panel: losses, and values between 0 and 1; every other metric has a
 * panel with its validation metric.
 */

import type { Lane, Measure, Metric } from "./protocol";

export const MOST_TRAININGS = 6;
export const MOST_PANELS = 6;
export const MOST_LINES = 48;
const MOST_COLUMNS = 200;
/** Scales are computed with numbers within these bounds, so that the computation does not overflow. */
export const LARGEST = 1e300;
export const SMALLEST = 1e-290;
const VALIDATION = /^(val|test)_/;
const LOSS = /loss/i;
const SHARE = /(^|_)(acc|accuracy|auc|precision|recall|f1|f1_score|iou|top_?k|hit_rate)(_|$)|accuracy/i;

export interface Line {
  training: Training;
  name: string;
  lane: Lane;
  /** The name without `val_`, which training and validation have in common. */
  base: string;
  validation: boolean;
  /** The unit of `xs`. */
  unit: "step" | "epoch";
  /** Never decreasing. */
  xs: number[];
  /** Including NaN and infinities. */
  ys: number[];
  /** Indices of points that represent a whole epoch. */
  ends: number[];
  /** The range of finite values; `low` is greater than `high` if there are none. */
  low: number;
  high: number;
}

export interface Panel {
  kind: "loss" | "share" | "other";
  /** The metric's name, if the panel shows only one. */
  base: string;
  lines: Line[];
}

interface Course {
  training: number;
  step: number | null;
  epoch: number | null;
}

export class Training {
  readonly lines = new Map<string, Line>();
  readonly events: Metric[] = [];
  /** The end of each epoch on the axis of steps. */
  readonly epochs = new Map<number, number>();
  readonly lanes = new Set<Lane>();
  unit: "step" | "epoch" = "epoch";

  /** `number` counts from 1. `name` is the model's; empty if its author chose none. */
  constructor(
    readonly number: number,
    readonly name = "",
  ) {}

  take(event: Metric, course: Course): void {
    const lane = event.lane ?? null;
    this.lanes.add(lane);
    this.events.push(event);
    if (event.per === "step") {
      this.unit = "step";
      course.step = event.step;
    } else {
      course.epoch = event.step;
      if (course.step !== null && !this.epochs.has(event.step)) this.epochs.set(event.step, course.step);
    }
    const unit = course.step === null ? "epoch" : "step";
    const x = course.step ?? event.step;
    for (const [name, value] of Object.entries(event.values)) {
      const line = this.line(name, lane, unit);
      if (line) add(line, x, measure(value), event.per === "epoch");
    }
  }

  /** The positions of a line's points on this training's axis; NaN if not known yet. */
  placed(line: Line): number[] {
    if (line.unit === this.unit) return line.xs;
    return line.xs.map((epoch) => this.epochs.get(epoch) ?? NaN);
  }

  private line(name: string, lane: Lane, unit: "step" | "epoch"): Line | null {
    const key = JSON.stringify([lane, name]);
    const found = this.lines.get(key);
    if (found) return found;
    if (this.lines.size >= MOST_LINES) return null;
    const base = name.replace(VALIDATION, "");
    const made: Line = {
      training: this,
      name,
      lane,
      base,
      unit,
      validation: base !== name,
      xs: [],
      ys: [],
      ends: [],
      low: Infinity,
      high: -Infinity,
    };
    this.lines.set(key, made);
    return made;
  }
}

/** The lines of trainings grouped by scale, in order of first appearance. */
export function panelsOf(trainings: readonly Training[]): Panel[] {
  const panels = new Map<string, Panel>();
  for (const line of trainings.flatMap((training) => [...training.lines.values()])) {
    const kind = kindOf(line);
    const key = kind === "other" ? `other ${line.base}` : kind;
    const panel = panels.get(key) ?? { kind, base: line.base, lines: [] };
    panel.lines.push(line);
    panels.set(key, panel);
  }
  return [...panels.values()];
}

export class Series {
  /** The last few; `begun` counts all. */
  trainingRuns: Training[] = [];
  begun = 0;
  private taken = 0;
  /** By lane and name. */
  private readonly courses = new Map<string, Course>();
  /** The number of each training by its name and how many of that name preceded it: lanes have theirs in common. */
  private readonly numbers = new Map<string, number>();

  /** Adds the events that it has not seen yet. */
  read(events: readonly Metric[]): void {
    for (; this.taken < events.length; this.taken++) this.take(events[this.taken] as Metric);
  }

  private take(event: Metric): void {
    const name = event.training ?? "";
    const key = JSON.stringify([event.lane ?? null, name]);
    let course = this.courses.get(key);
    if (!course || startsAgain(event, course)) {
      course = { training: course ? course.training + 1 : 1, step: null, epoch: null };
      this.courses.set(key, course);
    }
    const number = this.numberOf(name, course.training);
    this.trainingRuns.find((training) => training.number === number)?.take(event, course);
  }

  private numberOf(name: string, nth: number): number {
    const key = JSON.stringify([name, nth]);
    const known = this.numbers.get(key);
    if (known) return known;
    this.begun += 1;
    this.numbers.set(key, this.begun);
    this.trainingRuns.push(new Training(this.begun, nth > 1 && name ? `${name} (${nth})` : name));
    if (this.trainingRuns.length > MOST_TRAININGS) this.trainingRuns.shift();
    return this.begun;
  }
}

function startsAgain(event: Metric, course: Course): boolean {
  if (event.per === "epoch") return course.epoch !== null && event.step < course.epoch;
  if (course.step !== null) return event.step < course.step;
  return course.epoch !== null;
}

/**
 * `end` says that the value is an epoch's. From the second epoch on, a line has only those: within an epoch, Keras reports
 * the mean since the epoch began, which falls for that reason alone.
 */
function add(line: Line, x: number, y: number, end: boolean): void {
  if (line.ends.length > 1 && !end) return;
  const last = line.xs.length - 1;
  if (end && last >= 0 && line.xs[last] === x && line.ends.at(-1) !== last) line.ys[last] = y;
  else {
    line.xs.push(x);
    line.ys.push(y);
  }
  if (end) line.ends.push(line.xs.length - 1);
  if (line.ends.length === 2 && line.xs.length > 2) keepEnds(line);
  else stretch(line, y);
}

function keepEnds(line: Line): void {
  line.xs = line.ends.map((i) => line.xs[i] as number);
  line.ys = line.ends.map((i) => line.ys[i] as number);
  line.ends = line.xs.map((_, i) => i);
  [line.low, line.high] = [Infinity, -Infinity];
  for (const y of line.ys) stretch(line, y);
}

function stretch(line: Line, y: number): void {
  if (!Number.isFinite(y)) return;
  line.low = Math.max(-LARGEST, Math.min(line.low, y));
  line.high = Math.min(LARGEST, Math.max(line.high, y));
}

function kindOf(line: Line): Panel["kind"] {
  if (LOSS.test(line.base)) return "loss";
  return SHARE.test(line.base) && line.low >= 0 && line.high <= 1 ? "share" : "other";
}

export function measure(value: Measure): number {
  if (typeof value === "number") return value;
  return value === "nan" ? NaN : value === "inf" ? Infinity : -Infinity;
}

/** The index of the last point at or before `x`; -1 if there is none. `xs` must not decrease. */
export function before(xs: readonly number[], x: number): number {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Where the last point of a line's lane is, whatever its metric: a worker that has ended has no values after it. */
export function laneEnd(line: Line): number {
  const ends = [...line.training.lines.values()]
    .filter((other) => other.lane === line.lane)
    .map((other) => line.training.placed(other).findLast((place) => !Number.isNaN(place)) ?? -Infinity);
  return Math.max(...ends);
}

/**
 * The points worth drawing: for each column of pixels the first, lowest, highest and last, in order, in stretches that
 * end at values that are not numbers. `column` gives the column of a position.
 */
export function thinned(xs: readonly number[], ys: readonly number[], column: (x: number) => number): number[][] {
  const stretches: number[][] = [];
  let stretch: number[] = [];
  let [at, first, low, high, last] = [NaN, -1, -1, -1, -1];
  const flush = (): void => {
    if (first < 0) return;
    stretch.push(...[...new Set([first, low, high, last])].sort((a, b) => a - b));
    first = -1;
  };
  for (let i = 0; i < xs.length; i++) {
    const y = ys[i] as number;
    const here = column(xs[i] as number);
    if (!Number.isFinite(y) || Number.isNaN(here)) {
      flush();
      if (stretch.length) stretches.push(stretch);
      stretch = [];
      continue;
    }
    if (first >= 0 && here === at) {
      if (y < (ys[low] as number)) low = i;
      if (y > (ys[high] as number)) high = i;
      last = i;
      continue;
    }
    flush();
    at = here;
    first = low = high = last = i;
  }
  flush();
  if (stretch.length) stretches.push(stretch);
  return stretches;
}

export interface Scale {
  low: number;
  high: number;
  logarithmic: boolean;
  ticks: number[];
}

/** Values with a larger ratio get a logarithmic scale, such as a loss that falls by powers of ten. */
const FAR_APART = 1_000;

/** A scale with round ends for values from `low` to `high`; with `fromZero`, or for a single value, it starts at zero. */
export function scale(low: number, high: number, fromZero = false): Scale {
  if (!(low <= high) || (low === 0 && high === 0)) return { low: 0, high: 1, logarithmic: false, ticks: [0, 1] };
  if (low === high) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low > SMALLEST && high / low >= FAR_APART) {
    const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const every = Math.max(1, Math.ceil((to - from) / 4));
    const powers = Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, i) => 10 ** (from + i * every));
    return { low: 10 ** from, high: 10 ** to, logarithmic: true, ticks: powers };
  }
  const bottom = low >= 0 && (fromZero || low < 0.5 * high) ? 0 : low;
  const range = high - bottom;
  const step = roundStep(range > SMALLEST ? range / 3 : 1);
  const from = Math.floor(bottom / step) * step;
  const steps = Math.max(1, Math.ceil((high - from) / step - 1e-9));
  return {
    low: from,
    high: from + steps * step,
    logarithmic: false,
    ticks: Array.from({ length: steps + 1 }, (_, i) => Number((from + i * step).toPrecision(12))),
  };
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 2.5 ? 2.5 : lead <= 5 ? 5 : 10) * power;
}

/** About `count` whole numbers from `from` to `to`, round ones in between. */
export function roundSteps(from: number, to: number, count: number): number[] {
  if (to <= from) return [from];
  const step = Math.max(1, Math.round(roundStep((to - from) / Math.max(1, count))));
  const inside: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) inside.push(at);
  return inside;
}

/** At most `most` of the items, evenly spaced, including the first and last. */
export function spread<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  return Array.from({ length: most }, (_, i) => all[Math.round((i * (all.length - 1)) / (most - 1))] as T);
}

/** All metrics as comma-separated values; `title` names a training where there are several. */
export function asCsv(trainings: readonly Training[], title: (training: Training) => string): string {
  const names = [...new Set(trainings.flatMap(({ lines }) => [...lines.values()].map((line) => line.name)))];
  const columns = names.slice(0, MOST_COLUMNS);
  const several = trainings.length > 1;
  const head = [...(several ? ["training"] : []), "lane", "per", "step", ...columns].map(quoted).join(",");
  const rows = trainings.flatMap((training) =>
    training.events.map((event) =>
      [
        ...(several ? [quoted(title(training))] : []),
        quoted(event.lane ?? ""),
        event.per,
        event.step,
        ...columns.map((name) => event.values[name] ?? ""),
      ].join(","),
    ),
  );
  return `${[head, ...rows].join("\r\n")}\r\n`;
}

/** A field that spreadsheets do not interpret as a formula. */
function quoted(text: string): string {
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
