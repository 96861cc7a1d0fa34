/** One panel of a chart: lines with a common scale, below a legend with the last value of each. */

import { make } from "../../web/frontend/element";
import { formatNumber } from "../../web/frontend/format-number";
import { localizedNumber, say } from "../../web/frontend/strings";
import { draw, shape } from "../../web/frontend/svg";
import { laneColor } from "./lane-color";
import { laneShape } from "./lane-shape";
import {
  before,
  type Line,
  laneEnd,
  type Panel,
  roundSteps,
  type Scale,
  scale,
  type Training,
  thinned,
} from "./series";

const TOP = 10;
const BOTTOM = 22;
const LEFT = 46;
const RIGHT = 10;
const HEIGHT = 160;
const LETTER = 6.4;
const SAMPLE_WIDTH = 26;
const SAMPLE_HEIGHT = 12;
const MARK = 3.4;
const WORD_SPACE = 34;
/** The maximum number of marks for epochs and for values that are not numbers; more would be unreadable. */
const MOST_EPOCHS = 24;
const MOST_STRANGE = 8;
const MOST_DESCRIBED = 8;
const MOST_IN_LEGEND = 24;
/** Metrics in the title of a panel. */
const MOST_NAMED = 3;
const ACCURACY = /(^|_)acc(uracy)?(_|$)|accuracy/i;
/** Colors of lines, by training and metric; those of a single training in a lane have the lane's color. */
const COLORS = ["own", "r1", "r4", "r3", "r0", "r5", "r6", "r7"];

interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
  from: number;
  to: number;
  scale: Scale;
}

export class PanelView {
  readonly box: HTMLElement;
  private readonly caption = make("figcaption");
  private readonly legend = make("ul.legend");
  private readonly svg = draw("svg.plot", { role: "img" });
  private readonly headMark = draw("g.head");
  private panel: Panel | null = null;
  private colors: ReadonlyMap<Line, string> = new Map();
  private frame: Frame | null = null;

  /** `topology` decides the colors of lanes. `point` gets the position under the pointer, or null when it leaves. */
  constructor(
    private readonly topology: string,
    point: (x: number | null) => void,
  ) {
    this.box = make("figure.panel", {}, this.caption, this.legend, this.svg);
    const tell = (event: PointerEvent): void => {
      if (!this.frame) return;
      const { left, right, from, to } = this.frame;
      const at = (event.clientX - this.svg.getBoundingClientRect().left - left) / (right - left);
      point(from + Math.min(1, Math.max(0, at)) * (to - from));
    };
    this.svg.addEventListener("pointermove", tell as EventListener);
    this.svg.addEventListener("pointerdown", tell as EventListener);
    this.svg.addEventListener("pointerleave", () => point(null));
  }

  /** `trainings` share the axis; the panel may lack some of them. */
  paint(panel: Panel, trainings: readonly Training[], head: number | null): void {
    this.panel = panel;
    this.colors = colorsOf(panel, this.topology);
    const width = this.box.clientWidth || 320;
    this.frame = frameOf(panel, trainings, width - RIGHT, HEIGHT - BOTTOM);
    this.caption.textContent = [titleOf(panel), this.frame.scale.logarithmic ? say("chart.logarithmic") : ""]
      .filter(Boolean)
      .join(" · ");
    this.legend.replaceChildren(...legend(panel, trainings.length > 1, this.colors));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.setAttribute("height", String(HEIGHT));
    this.svg.setAttribute("aria-label", summary(panel, trainings.length > 1));
    const words: number[] = [];
    this.svg.replaceChildren(
      ...axes(this.frame, trainings, width),
      ...panel.lines.map((line) => lineGroup(line, this.frame as Frame, this.colors, words)),
      this.headMark,
    );
    this.read(head);
  }

  /** Moves the reading cursor to a position; null removes it. */
  read(x: number | null): void {
    const { frame, panel, colors } = this;
    if (x === null || !frame || !panel) {
      this.headMark.replaceChildren();
      return;
    }
    const across = horizontal(frame, x);
    const dots = panel.lines.flatMap((line) => {
      const at = before(line.training.placed(line), x);
      const y = line.ys[at];
      return y !== undefined && Number.isFinite(y) && laneEnd(line) >= x
        ? [draw(`circle.${colors.get(line)}`, { cx: across, cy: vertical(frame, y), r: 3.5 })]
        : [];
    });
    this.headMark.replaceChildren(draw("line", { x1: across, x2: across, y1: frame.top, y2: frame.bottom }), ...dots);
  }
}

/** The axis of steps starts at 0, and so does that of losses and shares, so that no small difference looks large. */
function frameOf(panel: Panel, trainings: readonly Training[], right: number, bottom: number): Frame {
  let to = 0;
  let [low, high] = [Infinity, -Infinity];
  for (const training of trainings) {
    for (const line of training.lines.values()) {
      const x = training.placed(line).findLast((place) => !Number.isNaN(place));
      to = Math.max(to, x ?? 0);
    }
  }
  for (const line of panel.lines) [low, high] = [Math.min(low, line.low), Math.max(high, line.high)];
  return { left: LEFT, right, top: TOP, bottom, from: 0, to: to || 1, scale: scale(low, high, panel.kind !== "other") };
}

function horizontal({ left, right, from, to }: Frame, x: number): number {
  return left + ((x - from) / (to - from)) * (right - left);
}

/** Infinities are drawn at the edges, NaN at the bottom. */
function vertical({ top, bottom, scale }: Frame, y: number): number {
  if (Number.isNaN(y)) return bottom;
  const value = Math.min(scale.high, Math.max(scale.low, y));
  const part = scale.logarithmic
    ? Math.log(value / scale.low) / Math.log(scale.high / scale.low)
    : (value - scale.low) / (scale.high - scale.low);
  return bottom - part * (bottom - top);
}

function axes(frame: Frame, trainings: readonly Training[], width: number): SVGElement[] {
  const { left, right, top, bottom, from, to } = frame;
  const made: SVGElement[] = [];
  for (const tick of frame.scale.ticks) {
    const y = vertical(frame, tick);
    made.push(
      draw("line.grid", { x1: left, x2: right, y1: y, y2: y }),
      draw("text.tick.end", { x: left - 7, y: y + 3.5 }, formatNumber(tick)),
    );
  }
  const ends = new Set(trainings.flatMap(({ epochs }) => [...epochs.values()]).filter((x) => x > from && x < to));
  const every = Math.ceil(ends.size / MOST_EPOCHS);
  const { unit } = trainings[0] as Training;
  for (const x of unit === "step" ? [...ends].filter((_, i) => i % every === 0) : []) {
    const at = horizontal(frame, x);
    made.push(draw("line.epoch", { x1: at, x2: at, y1: top, y2: bottom }));
  }
  for (const tick of roundSteps(from, to, width < 300 ? 2 : 3)) {
    const x = horizontal(frame, tick);
    const atEnd = x > right - (localizedNumber(tick).length * LETTER) / 2;
    made.push(
      draw(
        `text.tick.${atEnd ? "end" : "middle"}`,
        { x: atEnd ? right + 2 : x, y: bottom + 16 },
        localizedNumber(tick),
      ),
    );
  }
  made.push(draw("text.tick", { x: 0, y: bottom + 16 }, unit === "step" ? say("chart.steps") : say("chart.epochs")));
  return made;
}

/** `words` collects where the panel already labels a value that is not a number: close marks share one label. */
function lineGroup(line: Line, frame: Frame, colors: ReadonlyMap<Line, string>, words: number[]): SVGElement {
  const xs = line.training.placed(line);
  const group = draw(`g.line.${colors.get(line)}${line.validation ? ".validation" : ""}`);
  const at = (i: number): [number, number] => [
    horizontal(frame, xs[i] as number),
    vertical(frame, line.ys[i] as number),
  ];
  const path: string[] = [];
  for (const stretch of thinned(xs, line.ys, (x) => Math.round(horizontal(frame, x)))) {
    path.push(
      `M${stretch
        .map((i) =>
          at(i)
            .map((n) => n.toFixed(1))
            .join(" "),
        )
        .join("L")}`,
    );
    if (stretch.length === 1) group.append(mark(line, ...at(stretch[0] as number)));
  }
  group.prepend(draw("path.stroke", { d: path.join("") }));
  const ends = line.ends.length <= MOST_EPOCHS ? line.ends : [];
  for (const i of ends) {
    if (Number.isFinite(line.ys[i]) && !Number.isNaN(xs[i])) group.append(mark(line, ...at(i)));
  }
  const last = line.ys.length - 1;
  if (Number.isFinite(line.ys[last]) && !Number.isNaN(xs[last])) group.append(mark(line, ...at(last)));
  for (const i of strange(line)) {
    const [x, y] = at(i);
    if (Number.isNaN(x)) continue;
    group.append(draw("path.strange", { d: `M${x - 3.5} ${y - 3.5}l7 7m0-7l-7 7` }));
    if (words.some((other) => Math.abs(other - x) < WORD_SPACE)) continue;
    words.push(x);
    group.append(
      draw(
        "text.strange-word.middle",
        { x, y: y > frame.top + 24 ? y - 7 : y + 16 },
        formatNumber(line.ys[i] as number),
      ),
    );
  }
  return group;
}

/** The first point of each stretch of values that are not numbers. */
function strange(line: Line): number[] {
  const found: number[] = [];
  for (let i = 0; i < line.ys.length && found.length < MOST_STRANGE; i++) {
    if (!Number.isFinite(line.ys[i]) && (i === 0 || Number.isFinite(line.ys[i - 1]))) found.push(i);
  }
  return found;
}

function mark(line: Line, x: number, y: number): SVGElement {
  return shape(line.lane ? laneShape(line.lane) : line.training.number - 1, x, y, MARK);
}

/** For each line a sample of it, its name and its last value. */
function legend(panel: Panel, several: boolean, colors: ReadonlyMap<Line, string>): HTMLElement[] {
  const middle = SAMPLE_HEIGHT / 2;
  const items = panel.lines.slice(0, MOST_IN_LEGEND).map((line) => {
    const sample = draw(
      "svg.plot-sample",
      { viewBox: `0 0 ${SAMPLE_WIDTH} ${SAMPLE_HEIGHT}`, "aria-hidden": "true" },
      draw("path.stroke", { d: `M1 ${middle}H${SAMPLE_WIDTH - 1}` }),
      mark(line, SAMPLE_WIDTH / 2, middle),
    );
    const words = [label(line, panel, several), formatNumber(line.ys.at(-1) as number)].filter(Boolean).join(" ");
    const classes = `${colors.get(line)}${line.validation ? ".validation" : ""}`;
    return make(`li.${classes}`, {}, sample as unknown as HTMLElement, words);
  });
  if (panel.lines.length > MOST_IN_LEGEND) items.push(make("li", {}, say("chart.andMore")));
  return items;
}

/** The name that tells this line from the panel's others. */
function label(line: Line, panel: Panel, several: boolean): string {
  const bases = new Set(panel.lines.map((other) => other.base));
  const name =
    bases.size > 1 || panel.lines.length === 1 || !(line.lane || several)
      ? line.name
      : line.validation
        ? line.name.replace(line.base, "").replace("_", "")
        : "";
  return [several ? trainingTitle(line.training) : "", line.lane, name].filter(Boolean).join(" ");
}

export function trainingTitle(training: Training): string {
  return training.name || say("chart.training", { number: localizedNumber(training.number) });
}

/** By training, lane and metric; lines of a single training have the colors of their lanes. */
function colorsOf({ lines }: Panel, topology: string): ReadonlyMap<Line, string> {
  const several = lines.some(({ training }) => training !== lines[0]?.training);
  const known = new Map<string, string>();
  return new Map(
    lines.map((line) => {
      if (line.lane && !several) return [line, laneColor(line.lane, topology)];
      const kind = JSON.stringify([line.training.number, line.lane, line.base]);
      const color = known.get(kind) ?? (COLORS[known.size % COLORS.length] as string);
      known.set(kind, color);
      return [line, color];
    }),
  );
}

/** What the panel's lines measure: a word for losses and accuracies, otherwise the names of the metrics. */
export function titleOf({ kind, base, lines }: Panel): string {
  if (kind === "loss") return say("chart.loss");
  const bases = [...new Set(lines.map((line) => line.base))];
  if (kind === "share" && bases.every((name) => ACCURACY.test(name))) return say("chart.accuracy");
  return kind === "share" ? `${bases.slice(0, MOST_NAMED).join(", ")}${bases.length > MOST_NAMED ? "…" : ""}` : base;
}

/** A description of the panel in sentences. */
export function summary(panel: Panel, several: boolean): string {
  const said = panel.lines.slice(0, MOST_DESCRIBED).map((line) => {
    const name = [several ? trainingTitle(line.training) : "", line.lane, line.name].filter(Boolean).join(" ");
    const values = {
      name,
      first: formatNumber(line.ys[0] as number),
      last: formatNumber(line.ys.at(-1) as number),
      from: localizedNumber(line.xs[0] as number),
      to: localizedNumber(line.xs.at(-1) as number),
    };
    const course = line.unit === "step" ? say("chart.fromStep", values) : say("chart.fromEpoch", values);
    return line.low > line.high
      ? course
      : `${course} ${say("chart.between", { low: formatNumber(line.low), high: formatNumber(line.high) })}`;
  });
  if (panel.lines.length > MOST_DESCRIBED) said.push(say("chart.andMore"));
  return [`${titleOf(panel)}.`, ...said].join(" ");
}
