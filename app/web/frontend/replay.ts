/**
 * One all-reduce, step by step: the gradient of each replica, what the reduction makes of them, the variable before
 * and after. Values are bars from a line of zero; each pair of stages has a scale of its own.
 */

import { make } from "./element";
import { laneColour } from "./lane-colour";
import type { Replay } from "./picture-data";
import { reading } from "./reading";
import { say } from "./strings";
import { disclosed, numbersTable } from "./table";
import { draw } from "./vector";

/** Of the drawing of one row, which is as wide as there is room. */
const HEIGHT = 46;
const COLUMN = 10;
const BAR = 7;
const PAUSE_MS = 1_900;

interface Row {
  name: string;
  values: readonly number[];
  colour: string;
  /** From which stage on it is there. */
  stage: number;
  /** The largest value of the rows that are drawn on the same scale. */
  largest: number;
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
    flying.style.setProperty("--way", String(data.replicas.length - i));
    lines[i]?.append(flying);
  });
  const words = make("p.replay-words", { "aria-live": "polite" });
  const button = (label: string, act: () => void): HTMLButtonElement => {
    const made = make<HTMLButtonElement>("button", { type: "button" }, label);
    made.addEventListener("click", act);
    return made;
  };
  let stage = 0;
  let timer = 0;
  const show = (to: number): void => {
    picture.classList.toggle("reducing", stage === 0 && to === 1);
    stage = to;
    lines.forEach((line, i) => line.classList.toggle("waiting", (rows[i] as Row).stage > stage));
    words.textContent = say("picture.stage", { stage: stage + 1, stages: stages.length, words: stages[stage] as string });
    back.disabled = stage === 0;
    on.disabled = stage === stages.length - 1;
  };
  const halt = (): void => {
    window.clearInterval(timer);
    timer = 0;
    play.textContent = say("picture.play");
  };
  const step = (by: number): void => {
    halt();
    const hadFocus = [back, on].includes(document.activeElement as HTMLButtonElement);
    show(Math.min(stages.length - 1, Math.max(0, stage + by)));
    if (hadFocus && back.disabled) on.focus();
    else if (hadFocus && on.disabled) back.focus();
  };
  const back = button(say("picture.back"), () => step(-1));
  const on = button(say("picture.on"), () => step(1));
  const play = button(say("picture.play"), () => {
    if (timer) return halt();
    show(stage === stages.length - 1 ? 0 : stage + 1);
    play.textContent = say("picture.pause");
    timer = window.setInterval(() => {
      if (!picture.isConnected || stage >= stages.length - 2) halt();
      if (stage < stages.length - 1) show(stage + 1);
    }, PAUSE_MS);
  });
  play.hidden = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  show(0);

  const heads = [say("picture.element"), ...rows.map((row) => row.name)];
  const body = data.reduced.map((_, i) => [data.positions[i]?.join(", ") || String(i), ...rows.map((row) => reading(row.values[i] as number))]);
  return make(
    "figure.drawn",
    {},
    make("figcaption", {}, [name, data.algorithm].filter(Boolean).join(" · ")),
    picture,
    make("div.replay-controls", { role: "group", "aria-label": say("picture.controls") }, back, play, on, words),
    disclosed(say("chart.numbers"), () => numbersTable(name, heads, body)),
  );
}

function rowsOf(data: Replay): Row[] {
  const gradients = largest([...data.replicas.flatMap((replica) => replica.values), ...data.reduced]);
  const variable = largest([...data.before, ...(data.after ?? [])]);
  const rows: Row[] = data.replicas.map(({ lane, values }) => ({ name: lane, values, colour: laneColour(lane, ""), stage: 0, largest: gradients }));
  rows.push({ name: operationOf(data), values: data.reduced, colour: "own", stage: 1, largest: gradients });
  rows.push({ name: say("picture.before"), values: data.before, colour: "r-ink", stage: 2, largest: variable });
  if (data.after) rows.push({ name: say("picture.after"), values: data.after, colour: "own", stage: 3, largest: variable });
  return rows;
}

function stagesOf(data: Replay): string[] {
  const stages = [say("picture.eachGradient"), say("picture.reduced", { operation: operationOf(data) }), say("picture.variableBefore")];
  return data.after ? [...stages, say("picture.variableAfter")] : stages;
}

function operationOf({ operation }: Replay): string {
  if (/^sum$/i.test(operation)) return say("picture.sum");
  return /^mean$/i.test(operation) ? say("picture.mean") : operation;
}

function largest(values: readonly number[]): number {
  return Math.max(0, ...values.map(Math.abs).filter(Number.isFinite)) || 1;
}

function rowOf(row: Row): HTMLElement {
  const middle = HEIGHT / 2;
  const width = COLUMN * row.values.length;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, preserveAspectRatio: "none" }, draw("line", { x1: 0, x2: width, y1: middle, y2: middle }));
  const bars = make("div.replay-bars", {}, svg);
  row.values.forEach((value, i) => {
    const x = i * COLUMN + (COLUMN - BAR) / 2;
    if (!Number.isFinite(value)) {
      const word = make("span.strange-word", {}, reading(value));
      word.style.left = `${((i + 0.5) / row.values.length) * 100}%`;
      bars.append(word);
      return;
    }
    const part = value / row.largest;
    const tall = Math.max(1, Math.abs(part) * (middle - 3));
    svg.append(draw("rect", { x, y: (middle - (part > 0 ? tall : 0)).toFixed(1), width: BAR, height: tall.toFixed(1) }));
  });
  return make(`div.replay-row.${row.colour}`, {}, make("span.row-name", {}, row.name), bars);
}
