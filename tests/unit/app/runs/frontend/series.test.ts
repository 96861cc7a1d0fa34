import assert from "node:assert/strict";
import { test } from "node:test";

import type { Measure, Metric } from "../../../../../app/runs/frontend/protocol";
import {
  asCsv,
  before,
  laneEnd,
  MOST_LINES,
  MOST_TRAININGS,
  panelsOf,
  roundSteps,
  Series,
  scale,
  spread,
  thinned,
} from "../../../../../app/runs/frontend/series";

let seq = 0;
const metric = (step: number, values: Record<string, Measure>, more: Partial<Metric> = {}): Metric => ({
  kind: "metric",
  seq: ++seq,
  at_ms: seq,
  step,
  per: "step",
  values,
  ...more,
});
const epoch = (step: number, values: Record<string, Measure>, lane: string | null = null): Metric =>
  metric(step, values, { per: "epoch", lane });

function series(...events: Metric[]): Series {
  const made = new Series();
  made.read(events);
  return made;
}

test("steps of fit, its epochs and its validation are one training", () => {
  const { trainingRuns } = series(
    metric(1, { loss: 3 }),
    metric(2, { loss: 2 }),
    epoch(1, { loss: 2.5, val_loss: 2.6 }),
    metric(3, { loss: 1 }),
    epoch(2, { loss: 1.5, val_loss: 1.6 }),
  );
  assert.equal(trainingRuns.length, 1);
  const { lines, epochs, unit } = trainingRuns[0]!;
  assert.equal(unit, "step");
  assert.deepEqual(
    [...epochs],
    [
      [1, 2],
      [2, 3],
    ],
  );
  const [loss, validation] = [...lines.values()];
  assert.deepEqual(
    [loss!.xs, loss!.ys, loss!.ends],
    [
      [2, 3],
      [2.5, 1.5],
      [0, 1],
    ],
  );
  assert.deepEqual(
    [validation!.xs, validation!.ys, validation!.base, validation!.validation],
    [[2, 3], [2.6, 1.6], "loss", true],
  );
});

test("where steps go back, another training begins, and the epochs of it with it", () => {
  const { trainingRuns, begun } = series(
    metric(8, { loss: 1 }),
    epoch(1, { loss: 1 }),
    metric(1, { loss: 3 }),
    epoch(1, { loss: 2 }),
    epoch(2, { loss: 1 }),
  );
  assert.equal(begun, 2);
  assert.deepEqual(
    trainingRuns.map((training) => training.events.length),
    [2, 3],
  );
  assert.equal(series(epoch(1, { a: 1 }), epoch(2, { a: 1 }), epoch(1, { a: 1 })).begun, 2);
});

test("models with names train apart, whatever the order of their steps", () => {
  const { trainingRuns } = series(
    metric(1, { loss: 3 }, { training: "generator" }),
    metric(1, { loss: 5 }, { training: "discriminator" }),
    metric(2, { loss: 2 }, { training: "generator" }),
    metric(2, { loss: 4 }, { training: "discriminator" }),
    metric(1, { loss: 6 }, { training: "generator" }),
  );
  assert.deepEqual(
    trainingRuns.map(({ name, lines }) => [name, [...lines.values()][0]!.ys]),
    [
      ["generator", [3, 2]],
      ["discriminator", [5, 4]],
      ["generator (2)", [6]],
    ],
  );
  assert.equal(panelsOf(trainingRuns).length, 1, "on common axes");
});

test("from the second epoch on, only the means of epochs count", () => {
  const { trainingRuns } = series(
    ...[metric(1, { loss: 9 }), metric(2, { loss: 7 })],
    ...[epoch(1, { loss: 7 }), metric(3, { loss: 4 }), metric(4, { loss: 3 })],
    ...[epoch(2, { loss: 3 }), metric(5, { loss: 8 }), metric(6, { loss: 2 })],
    epoch(3, { loss: 2 }),
  );
  const [line] = [...trainingRuns[0]!.lines.values()];
  assert.deepEqual([line!.xs, line!.ys, line!.low, line!.high], [[2, 4, 6], [7, 3, 2], 2, 7]);
});

test("each lane counts its own training runs", () => {
  const lane = (name: string) => ({ lane: name });
  const { trainingRuns } = series(
    metric(1, { loss: 3 }, lane("worker 0")),
    metric(5, { loss: 2 }, lane("worker 0")),
    metric(1, { loss: 3 }, lane("worker 1")),
    metric(2, { loss: 2 }, lane("worker 1")),
  );
  assert.equal(trainingRuns.length, 1);
  assert.deepEqual(
    [...trainingRuns[0]!.lines.values()].map((line) => line.lane),
    ["worker 0", "worker 1"],
  );
});

test("epochs alone, of a lane beside one with steps, stand where the epoch ended", () => {
  const { trainingRuns } = series(
    metric(10, { loss: 3 }),
    epoch(1, { loss: 3 }, "worker 1"),
    epoch(1, { loss: 3 }),
    metric(20, { loss: 3 }),
    epoch(2, { loss: 2 }, "worker 1"),
  );
  const line = [...trainingRuns[0]!.lines.values()].find((each) => each.lane === "worker 1")!;
  assert.deepEqual(trainingRuns[0]!.placed(line), [10, NaN]);
});

test("what is read in pieces is read once", () => {
  const events = [metric(1, { loss: 3 })];
  const made = series(...events);
  events.push(metric(2, { loss: 2 }));
  made.read(events);
  made.read(events);
  assert.deepEqual([...made.trainingRuns[0]!.lines.values()][0]!.xs, [1, 2]);
});

test("scales of one kind share a panel; a share above 1 is none", () => {
  const { trainingRuns } = series(
    metric(1, { loss: 3, val_loss: 4, accuracy: 0.5, val_auc: 0.25, lr: 0.01, acc_percent: 89 }),
  );
  const panels = panelsOf(trainingRuns).map(({ kind, lines }) => [kind, lines.map((line) => line.name)]);
  assert.deepEqual(panels, [
    ["loss", ["loss", "val_loss"]],
    ["share", ["accuracy", "val_auc"]],
    ["other", ["lr"]],
    ["other", ["acc_percent"]],
  ]);
});

test("a program that makes up training runs and names is bounded", () => {
  const back = series(...Array.from({ length: 100 }, (_, i) => metric(100 - i, { loss: 1 })));
  assert.deepEqual([back.trainingRuns.length, back.begun], [MOST_TRAININGS, 100]);
  const names = series(...Array.from({ length: 200 }, (_, i) => metric(i, { [`m${i}`]: 1, ["__proto__"]: 1 })));
  assert.equal(names.trainingRuns[0]!.lines.size, MOST_LINES);
});

test("of each column the extremes are drawn, and what is no number parts the line", () => {
  const xs = Array.from({ length: 20_000 }, (_, i) => i);
  const ys = xs.map((x) => (x === 7_777 ? 9 : x === 12_345 ? NaN : x % 2));
  const stretches = thinned(xs, ys, (x) => Math.floor(x / 100));
  const drawn = stretches.flat();
  assert.equal(stretches.length, 2);
  assert.ok(drawn.length <= 4 * 202, `${drawn.length} points`);
  assert.ok(drawn.includes(7_777) && drawn.includes(0) && drawn.includes(19_999) && !drawn.includes(12_345));
  assert.deepEqual(
    drawn,
    drawn.toSorted((a, b) => a - b),
  );
});

test("a position finds the last point before it", () => {
  assert.deepEqual(
    [0, 1, 1.5, 3, 99].map((x) => before([1, 2, 2, 3], x)),
    [-1, 0, 0, 3, 3],
  );
  assert.equal(before([], 1), -1);
});

test("a lane ends where the last of its metrics does", () => {
  const all = series(
    metric(1, { loss: 3, accuracy: 0.1 }, { lane: "worker 0" }),
    metric(1, { loss: 4 }, { lane: "worker 1" }),
    metric(2, { loss: 2 }, { lane: "worker 0" }),
  );
  const lines = all.trainingRuns.flatMap((training) => [...training.lines.values()]);
  assert.deepEqual(
    lines.map((line) => [line.lane, line.name, laneEnd(line)]),
    [
      ["worker 0", "loss", 2],
      ["worker 0", "accuracy", 2],
      ["worker 1", "loss", 1],
    ],
  );
});

test("scales have round ends and take any number", () => {
  assert.deepEqual(scale(0.1, 2.3), { low: 0, high: 3, logarithmic: false, ticks: [0, 1, 2, 3] });
  assert.deepEqual(scale(2.2, 2.3).low, 2.2);
  assert.deepEqual(scale(2.2, 2.3, true).ticks, [0, 1, 2, 3]);
  assert.deepEqual(scale(-1, 2.3, true).low, -2);
  assert.deepEqual(scale(0.001, 1_000).ticks, [0.001, 0.1, 10, 1_000]);
  assert.deepEqual(scale(Infinity, -Infinity).ticks, [0, 1]);
  for (const [value, ...ticks] of [
    [0.55, 0, 0.2, 0.4, 0.6],
    [-5, -6, -4, -2, 0],
    [0, 0, 1],
  ] as const) {
    assert.deepEqual(scale(value, value).ticks, ticks, `one value, ${value}`);
  }
  for (const [low, high] of [
    [0, 0],
    [5, 5],
    [-1, -1],
    [1e300, 1e300],
    [-1e300, 1e300],
    [5e-324, 5e-324],
    [1e-300, 1e-299],
    [0, 5e-324],
    [1, 1 + 1e-15],
  ] as const) {
    const made = scale(low, high);
    assert.ok(
      made.low <= low && made.high >= high && made.high > made.low,
      `${low} to ${high}: ${JSON.stringify(made)}`,
    );
    assert.ok(
      made.ticks.length >= 2 && made.ticks.length <= 8 && made.ticks.every(Number.isFinite),
      `${low} to ${high}: ${made.ticks}`,
    );
  }
});

test("steps on the axis are whole and few", () => {
  assert.deepEqual(roundSteps(1, 300, 3), [100, 200, 300]);
  assert.deepEqual(roundSteps(1, 3, 3), [1, 2, 3]);
  assert.deepEqual(roundSteps(4, 4, 3), [4]);
  assert.ok(roundSteps(0, 2 ** 53, 3).length <= 5);
});

test("rows are spread over all of them", () => {
  assert.deepEqual(spread([1, 2, 3], 5), [1, 2, 3]);
  assert.deepEqual(
    spread(
      Array.from({ length: 101 }, (_, i) => i),
      5,
    ),
    [0, 25, 50, 75, 100],
  );
});

test("the file has every number, and no name in it is a formula", () => {
  const { trainingRuns } = series(
    metric(1, { loss: 0.5, '=cmd("x"),1': "nan" }),
    metric(2, { loss: -1 }, { lane: "worker 1" }),
    metric(1, { loss: 3 }, { training: "=small" }),
  );
  const title = ({ name }: { name: string }): string => name;
  const head = `lane,per,step,loss,"'=cmd(""x""),1"\r\n`;
  assert.equal(asCsv(trainingRuns.slice(0, 1), title), `${head},step,1,0.5,nan\r\nworker 1,step,2,-1,\r\n`);
  assert.equal(asCsv(trainingRuns, title).split("\r\n").at(-2), "'=small,,step,1,3,");
});
