/** One panel of a chart: lines with a common scale, with the current value at the end of each. */

import { make } from "../../web/frontend/element";
import { formatNumber } from "../../web/frontend/format-number";
import { localizedNumber, say } from "../../web/frontend/strings";
import { draw, shape } from "../../web/frontend/svg";
import { laneColor } from "./lane-color";
import { laneShape } from "./lane-shape";
import { apart, before, type Line, type Panel, roundSteps, type Scale, scale, type Training, thinned } from "./series";

const TOP = 10;
const BOTTOM = 22;
const LEFT = 46;
const RIGHT = 8;
const LEAST_HEIGHT = 150;
const LABEL_HEIGHT = 15;
const LABEL_SPACE = 26;
/** The largest share of the width for labels. */
const MOST_ROOM = 0.5;
const LETTER = 6.4;
const MARK = 3.4;
const WORD_SPACE = 34;
/** The maximum number of marks for epochs and for values that are not numbers; more would be unreadable. */
const MOST_EPOCHS = 24;
const MOST_STRANGE = 8;
const MOST_DESCRIBED = 8;
/** Metrics in the title of a panel. */
const MOST_NAMED = 3;
const ACCURACY = /(^|_)acc(uracy)?(_|$)|accuracy/i;
/** Colors of the lines of one process, by metric; lines of a lane have the lane's color. */
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
  private readonly svg = draw("svg.plot", { role: "img" });
  private readonly headMark = draw("g.head");
  private panel: Panel | null = null;
  private training: Training | null = null;
  private frame: Frame | null = null;

  /** `topology` decides the colors of lanes. `point` gets the position under the pointer, or null when it leaves. */
  constructor(
    private readonly topology: string,
    point: (x: number | null) => void,
  ) {
    this.box = make("figure.panel", {}, this.caption, this.svg);
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

  paint(panel: Panel, training: Training, head: number | null): void {
    this.panel = panel;
    this.training = training;
    const width = this.box.clientWidth || 320;
    const labels = panel.lines.map((line) =>
      label(line, panel, Math.floor((MOST_ROOM * width - LABEL_SPACE) / LETTER)),
    );
    const height = Math.max(LEAST_HEIGHT, panel.lines.length * LABEL_HEIGHT + TOP + BOTTOM);
    const room = Math.min(MOST_ROOM * width, Math.max(...labels.map((text) => text.length)) * LETTER + LABEL_SPACE);
    this.frame = frameOf(panel, training, width - room - RIGHT, height - BOTTOM);
    this.caption.textContent = [titleOf(panel), this.frame.scale.logarithmic ? say("chart.logarithmic") : ""]
      .filter(Boolean)
      .join(" · ");
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", String(height));
    this.svg.setAttribute("aria-label", summary(panel));
    const words: number[] = [];
    this.svg.replaceChildren(
      ...axes(this.frame, training, width),
      ...panel.lines.map((line) => lineGroup(line, panel, training, this.frame as Frame, this.topology, words)),
      ...endLabels(panel, training, labels, this.frame, this.topology),
      this.headMark,
    );
    this.read(head);
  }

  /** Moves the reading cursor to a position; null removes it. */
  read(x: number | null): void {
    const { frame, panel, training, topology } = this;
    if (x === null || !frame || !panel || !training) {
      this.headMark.replaceChildren();
      return;
    }
    const across = horizontal(frame, x);
    const dots = panel.lines.flatMap((line) => {
      const at = before(training.placed(line), x);
      const y = line.ys[at];
      return y !== undefined && Number.isFinite(y)
        ? [draw(`circle.${colorOf(line, panel, topology)}`, { cx: across, cy: vertical(frame, y), r: 3.5 })]
        : [];
    });
    this.headMark.replaceChildren(draw("line", { x1: across, x2: across, y1: frame.top, y2: frame.bottom }), ...dots);
  }
}

function frameOf(panel: Panel, training: Training, right: number, bottom: number): Frame {
  let [from, to] = [Infinity, -Infinity];
  let [low, high] = [Infinity, -Infinity];
  for (const line of training.lines.values()) {
    for (const x of [training.placed(line)[0], training.placed(line).at(-1)]) {
      if (x === undefined || Number.isNaN(x)) continue;
      [from, to] = [Math.min(from, x), Math.max(to, x)];
    }
  }
  for (const line of panel.lines) [low, high] = [Math.min(low, line.low), Math.max(high, line.high)];
  if (from > to) [from, to] = [0, 1];
  return { left: LEFT, right, top: TOP, bottom, from, to, scale: scale(low, high) };
}

function horizontal({ left, right, from, to }: Frame, x: number): number {
  return to > from ? left + ((x - from) / (to - from)) * (right - left) : (left + right) / 2;
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

function axes(frame: Frame, training: Training, width: number): SVGElement[] {
  const { left, right, top, bottom, from, to } = frame;
  const made: SVGElement[] = [];
  for (const tick of frame.scale.ticks) {
    const y = vertical(frame, tick);
    made.push(
      draw("line.grid", { x1: left, x2: right, y1: y, y2: y }),
      draw("text.tick.end", { x: left - 7, y: y + 3.5 }, formatNumber(tick)),
    );
  }
  const epochs = [...training.epochs].filter(([, x]) => x > from && x < to);
  const every = Math.ceil(epochs.length / MOST_EPOCHS);
  for (const [, x] of training.unit === "step" ? epochs.filter((_, i) => i % every === 0) : []) {
    const at = horizontal(frame, x);
    made.push(draw("line.epoch", { x1: at, x2: at, y1: top, y2: bottom }));
  }
  const unit = training.unit === "step" ? say("chart.steps") : say("chart.epochs");
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
  made.push(draw("text.tick", { x: right + 12, y: bottom + 16 }, unit));
  return made;
}

/** `words` collects where the panel already labels a value that is not a number: close marks share one label. */
function lineGroup(
  line: Line,
  panel: Panel,
  training: Training,
  frame: Frame,
  topology: string,
  words: number[],
): SVGElement {
  const xs = training.placed(line);
  const group = draw(`g.line.${colorOf(line, panel, topology)}${line.validation ? ".validation" : ""}`);
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
  return shape(line.lane ? laneShape(line.lane) : 0, x, y, MARK);
}

function endLabels(
  panel: Panel,
  training: Training,
  labels: readonly string[],
  frame: Frame,
  topology: string,
): SVGElement[] {
  const wanted = panel.lines.map((line) => vertical(frame, line.ys.at(-1) as number));
  const places = apart(wanted, LABEL_HEIGHT, frame.top + 4, frame.bottom - 2);
  return panel.lines.map((line, i) => {
    const x = horizontal(frame, training.placed(line).at(-1) as number);
    const from = Number.isNaN(x) ? frame.right : x;
    const group = draw(`g.label.${colorOf(line, panel, topology)}${line.validation ? ".validation" : ""}`);
    group.append(
      draw("path.leader", {
        d: `M${(from + 5).toFixed(1)} ${(wanted[i] as number).toFixed(1)}L${frame.right + 9} ${(places[i] as number).toFixed(1)}`,
      }),
    );
    const y = places[i] as number;
    if (line.lane) group.append(mark(line, frame.right + 15, y));
    group.append(draw("text", { x: frame.right + (line.lane ? 24 : 12), y: y + 4 }, labels[i] as string));
    return group;
  });
}

/** The name that tells this line from the panel's others, shortened if needed, and its last value in full. */
function label(line: Line, panel: Panel, most: number): string {
  const bases = new Set(panel.lines.map((other) => other.base));
  const name =
    bases.size > 1 || panel.lines.length === 1 || !line.lane
      ? line.name
      : line.validation
        ? line.name.replace(line.base, "").replace("_", "")
        : "";
  const value = formatNumber(line.ys.at(-1) as number);
  const words = [line.lane, name].filter(Boolean).join(" ");
  const room = Math.max(4, most - value.length - 1);
  return `${words.length > room ? `${words.slice(0, room - 1)}…` : words} ${value}`.trim();
}

function colorOf(line: Line, panel: Panel, topology: string): string {
  if (line.lane) return laneColor(line.lane, topology);
  const bases = [...new Set(panel.lines.map((other) => other.base))];
  return COLORS[bases.indexOf(line.base) % COLORS.length] as string;
}

/** What the panel's lines measure: a word for losses and accuracies, otherwise the names of the metrics. */
export function titleOf({ kind, base, lines }: Panel): string {
  if (kind === "loss") return say("chart.loss");
  const bases = [...new Set(lines.map((line) => line.base))];
  if (kind === "share" && bases.every((name) => ACCURACY.test(name))) return say("chart.accuracy");
  return kind === "share" ? `${bases.slice(0, MOST_NAMED).join(", ")}${bases.length > MOST_NAMED ? "…" : ""}` : base;
}

/** A description of the panel in sentences. */
export function summary(panel: Panel): string {
  const said = panel.lines.slice(0, MOST_DESCRIBED).map((line) => {
    const name = [line.lane, line.name].filter(Boolean).join(" ");
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
