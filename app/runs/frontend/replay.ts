/**
 * One all-reduce, step by step: each replica's gradient, the result of the reduction, and the variable before and
 * after. Values are bars from a zero line. Gradients and their sum share a scale, so the sum's row is as much taller as
 * the sum is larger; the variable has a scale of its own.
 */

import { make } from "../../web/frontend/element";
import { formatNumber } from "../../web/frontend/format-number";
import { Stepper } from "../../web/frontend/stepper";
import { say } from "../../web/frontend/strings";
import { draw } from "../../web/frontend/svg";
import { disclosed, numbersTable } from "../../web/frontend/table";
import { laneColor } from "./lane-color";
import type { Replay } from "./picture-data";
import { LARGEST, SMALLEST } from "./series";

/** The height of one row's drawing in pixels, between the ends of its bars; with more replicas, rows are lower. */
const TALL = 60;
const TALL_OF_MANY = 38;
const MANY = 4;
/** The sum's row is at most this tall; if needed, everything is drawn smaller. */
const TALLEST = 150;
const SHORTEST = 12;
const PADDING = 6;
/** Units of the drawing's width, which is stretched to the available space. */
const COLUMN = 10;
const BAR = 7;
const PAUSE_MS = 1_900;

interface Row {
  name: string;
  values: readonly number[];
  color: string;
  /** The first stage that shows the row. */
  stage: number;
  /** Pixels per unit. */
  scale: number;
  /** The row's height, and the distance of zero from its top, in pixels. */
  height: number;
  zero: number;
}

export function drawReplay(data: Replay): HTMLElement {
  const rows = rowsOf(data);
  const stages = stagesOf(data);
  const name = say("picture.replay", { variable: data.variable, shape: data.shape.join(", ") });
  const lines = rows.map(rowOf);
  const picture = make("div.replay", { role: "img", "aria-label": `${name}. ${stages.join(" ")}` }, ...lines);
  data.replicas.forEach((_, i) => {
    const flying = (lines[i] as HTMLElement).lastElementChild?.cloneNode(true) as HTMLElement;
    flying.classList.add("flying");
    flying.style.setProperty("--way", `${way(rows, i, data.replicas.length)}px`);
    lines[i]?.append(flying);
  });
  const words = make("p.replay-words", { "aria-live": "polite" });
  let timer = 0;
  const show = (stage: number, before: number): void => {
    picture.classList.toggle("reducing", before === 0 && stage === 1);
    for (const [i, line] of lines.entries()) line.classList.toggle("waiting", (rows[i] as Row).stage > stage);
    words.textContent = say("picture.stage", {
      stage: stage + 1,
      stages: stages.length,
      words: stages[stage] as string,
    });
  };
  const halt = (): void => {
    window.clearInterval(timer);
    timer = 0;
    play.textContent = say("picture.play");
  };
  const last = stages.length - 1;
  const stepper = new Stepper(stages.length, show, halt);
  const play = make<HTMLButtonElement>("button", { type: "button" }, say("picture.play"));
  play.addEventListener("click", () => {
    if (timer) return halt();
    stepper.go(stepper.step === last ? 0 : stepper.step + 1);
    play.textContent = say("picture.pause");
    timer = window.setInterval(() => {
      if (!picture.isConnected || stepper.step >= last - 1) halt();
      stepper.go(stepper.step + 1);
    }, PAUSE_MS);
  });
  play.hidden = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  stepper.go(0);

  const heads = [say("picture.element"), ...rows.map((row) => row.name)];
  const body = data.reduced.map((_, i) => [
    data.positions[i]?.join(", ") || String(i),
    ...rows.map((row) => formatNumber(row.values[i] as number)),
  ]);
  return make(
    "figure.drawn",
    {},
    make("figcaption", {}, [name, data.algorithm].filter(Boolean).join(" · ")),
    picture,
    make(
      "div.replay-controls",
      { role: "group", "aria-label": say("picture.controls") },
      stepper.back,
      play,
      stepper.on,
      words,
    ),
    disclosed(say("chart.numbers"), () => numbersTable(name, heads, body)),
  );
}

function rowsOf(data: Replay): Row[] {
  const tall = data.replicas.length > MANY ? TALL_OF_MANY : TALL;
  const [each, sum] = [reach(data.replicas.flatMap((replica) => replica.values)), reach(data.reduced)];
  const variable = reach([...data.before, ...(data.after ?? [])]);
  const gradients = Math.min(tall / length(each), TALLEST / length(sum));
  const row = (
    name: string,
    values: readonly number[],
    color: string,
    stage: number,
    span: Reach,
    scale: number,
  ): Row => {
    const bars = Math.max(SHORTEST, length(span) * scale);
    return {
      name,
      values,
      color,
      stage,
      scale,
      height: bars + 2 * PADDING,
      zero: PADDING + (span.high / length(span)) * bars,
    };
  };
  const rows = data.replicas.map(({ lane, values }) => row(lane, values, laneColor(lane, ""), 0, each, gradients));
  rows.push(row(operationOf(data), data.reduced, "own", 1, sum, gradients));
  rows.push(row(say("picture.before"), data.before, "r-ink", 2, variable, tall / length(variable)));
  if (data.after) rows.push(row(say("picture.after"), data.after, "own", 3, variable, tall / length(variable)));
  return rows;
}

/** The range of some values, including zero. */
interface Reach {
  low: number;
  high: number;
}

function reach(values: readonly number[]): Reach {
  const finite = values.filter(Number.isFinite);
  return { low: Math.max(-LARGEST, Math.min(0, ...finite)), high: Math.min(LARGEST, Math.max(0, ...finite)) };
}

function length({ low, high }: Reach): number {
  return high - low > SMALLEST ? high - low : 1;
}

/** The distance in pixels between the zero lines of two rows. */
function way(rows: readonly Row[], from: number, to: number): number {
  const between = rows.slice(from, to).reduce((sum, row) => sum + row.height, 0);
  return between + (rows[to] as Row).zero - (rows[from] as Row).zero;
}

function stagesOf(data: Replay): string[] {
  const stages = [
    say("picture.eachGradient"),
    say("picture.reduced", { operation: operationOf(data) }),
    say("picture.variableBefore"),
  ];
  return data.after ? [...stages, say("picture.variableAfter")] : stages;
}

function operationOf({ operation }: Replay): string {
  if (/^sum$/i.test(operation)) return say("picture.sum");
  return /^mean$/i.test(operation) ? say("picture.mean") : operation;
}

function rowOf(row: Row): HTMLElement {
  const { height, zero, scale } = row;
  const width = COLUMN * row.values.length;
  const svg = draw(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" },
    draw("line", { x1: 0, x2: width, y1: zero, y2: zero }),
  );
  const bars = make("div.replay-bars", {}, svg);
  row.values.forEach((value, i) => {
    const x = i * COLUMN + (COLUMN - BAR) / 2;
    if (!Number.isFinite(value)) {
      const word = make("span.strange-word", {}, formatNumber(value));
      word.style.left = `${((i + 0.5) / row.values.length) * 100}%`;
      bars.append(word);
      return;
    }
    const tall = Math.max(1, Math.abs(value) * scale);
    svg.append(draw("rect", { x, y: (zero - (value > 0 ? tall : 0)).toFixed(1), width: BAR, height: tall.toFixed(1) }));
  });
  const line = make(`div.replay-row.${row.color}`, {}, make("span.row-name", {}, row.name), bars);
  line.style.setProperty("--tall", `${height}px`);
  return line;
}
