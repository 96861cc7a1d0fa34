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

const ROW = 46;
const BAR_ROOM = 30;
const LABEL = 96;
const WIDTH = 560;
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
  const height = rows.length * ROW + 4;
  const svg = draw("svg.replay", { role: "img", viewBox: `0 0 ${WIDTH} ${height}`, "aria-label": `${name}. ${stages.join(" ")}` });
  const groups = rows.map((row, i) => rowGroup(row, i * ROW));
  const sum = data.replicas.length * ROW;
  const flying = data.replicas.map((_, i) => {
    const copy = (groups[i] as SVGElement).querySelector(".bars-of-row")?.cloneNode(true) as SVGElement;
    copy.setAttribute("class", `flying ${(rows[i] as Row).colour}`);
    copy.setAttribute("transform", `translate(0 ${i * ROW})`);
    return copy;
  });
  svg.append(...groups, ...flying);
  flying.forEach((copy, i) => copy.style.setProperty("--way", `${sum - i * ROW}px`));

  const words = make("p.replay-words", { "aria-live": "polite" });
  const button = (label: string, act: () => void): HTMLButtonElement => {
    const made = make<HTMLButtonElement>("button", { type: "button" }, label);
    made.addEventListener("click", act);
    return made;
  };
  let stage = 0;
  let timer = 0;
  const show = (to: number): void => {
    svg.classList.toggle("reducing", stage === 0 && to === 1);
    stage = to;
    groups.forEach((group, i) => group.classList.toggle("waiting", (rows[i] as Row).stage > stage));
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
      if (!svg.isConnected || stage >= stages.length - 2) halt();
      if (stage < stages.length - 1) show(stage + 1);
    }, PAUSE_MS);
  });
  play.hidden = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  show(0);

  const heads = [say("picture.element"), ...rows.map((row) => row.name)];
  const body = data.reduced.map((_, i) => [String(i), ...rows.map((row) => reading(row.values[i] as number))]);
  return make(
    "figure.drawn",
    {},
    make("figcaption", {}, [name, data.algorithm].filter(Boolean).join(" · ")),
    make("div.replay-frame", {}, svg as Element as HTMLElement),
    make("div.replay-controls", { role: "group", "aria-label": say("picture.controls") }, back, play, on, words),
    disclosed(say("chart.numbers"), () => numbersTable(name, heads, body)),
  );
}

function rowsOf(data: Replay): Row[] {
  const gradients = largest([...data.replicas.flatMap((replica) => replica.values), ...data.reduced]);
  const variable = largest([...data.before, ...(data.after ?? [])]);
  const rows: Row[] = data.replicas.map(({ lane, values }) => ({ name: lane, values, colour: laneColour(lane, "") || "r-ink", stage: 0, largest: gradients }));
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

function rowGroup(row: Row, top: number): SVGElement {
  const middle = ROW / 2;
  const room = (WIDTH - LABEL) / row.values.length;
  const wide = Math.min(34, room * 0.72);
  const bars = row.values.map((value, i) => {
    const x = LABEL + i * room + (room - wide) / 2;
    const part = Number.isNaN(value) ? 0 : Math.max(-1, Math.min(1, value / row.largest));
    const tall = Math.max(1, Math.abs(part) * (BAR_ROOM / 2));
    const bar = draw("rect", { x: x.toFixed(1), y: (middle - (part > 0 ? tall : 0)).toFixed(1), width: wide.toFixed(1), height: tall.toFixed(1), rx: 1.5 });
    if (Number.isFinite(value)) return bar;
    return draw("g", {}, bar, draw("text.strange-word", { x: (x + wide / 2).toFixed(1), y: middle - 4 }, reading(value)));
  });
  return draw(
    `g.replay-row.${row.colour}`,
    { transform: `translate(0 ${top})` },
    draw("line", { x1: LABEL, x2: WIDTH, y1: middle, y2: middle }),
    draw("text.row-name", { x: 0, y: middle + 4 }, row.name.length > 14 ? `${row.name.slice(0, 13)}…` : row.name),
    draw("g.bars-of-row", {}, ...bars),
  );
}
