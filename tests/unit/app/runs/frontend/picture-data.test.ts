import assert from "node:assert/strict";
import { test } from "node:test";

import { type Replay, readPicture, type Shards } from "../../../../../app/runs/frontend/picture-data";

const shards = {
  picture: "shards",
  title: "A batch",
  replicas: [{ lane: "replica 0", device: "/device:GPU:0", examples: [1, "b"], count: 9 }],
  labels: null,
};
const replay = {
  picture: "replay",
  variable: "dense/kernel",
  shape: [2, 1],
  operation: "sum",
  algorithm: "NcclAllReduce (simulated)",
  replicas: [
    { lane: "replica 0", values: [1, "nan"] },
    { lane: "replica 1", values: [2, -1] },
  ],
  reduced: [3, "nan"],
  before: [0, 0],
  after: null,
};
const variable = {
  name: "w",
  shape: [2],
  dtype: "float32",
  kind: "MirroredVariable",
  devices: ["/device:GPU:0"],
  bytes: 8,
};
const placement = { picture: "placement", variables: [variable] };

test("what is whole is read", () => {
  assert.deepEqual((readPicture(shards) as Shards).replicas[0], {
    lane: "replica 0",
    device: "/device:GPU:0",
    examples: ["1", "b"],
    count: 9,
  });
  assert.deepEqual((readPicture(replay) as Replay).reduced, [3, NaN]);
  assert.equal((readPicture({ ...replay, after: [1, 2] }) as Replay).after?.length, 2);
  assert.deepEqual(
    (
      readPicture({
        ...replay,
        positions: [
          [0, 0],
          [1, 0],
        ],
      }) as Replay
    ).positions,
    [
      [0, 0],
      [1, 0],
    ],
  );
  assert.equal(readPicture(placement)?.picture, "placement");
  assert.equal((readPicture({ ...shards, labels: { "1": "a coat" } }) as Shards).labels.get("1"), "a coat");
});

test("what is not as it should be is no picture", () => {
  const deep = (n: number): unknown[] => Array.from({ length: n }, (_, i) => i);
  const unfit: unknown[] = [
    null,
    1,
    "shards",
    [],
    {},
    { picture: "other" },
    { picture: "__proto__" },
    { ...shards, replicas: [] },
    { ...shards, replicas: {} },
    { ...shards, replicas: Array(17).fill(shards.replicas[0]) },
    { ...shards, replicas: [{ ...shards.replicas[0], examples: deep(257) }] },
    { ...shards, replicas: [{ ...shards.replicas[0], count: -1 }] },
    { ...shards, replicas: [{ ...shards.replicas[0], lane: "x".repeat(121) }] },
    { ...shards, replicas: [{ ...shards.replicas[0], examples: [{}] }] },
    { ...shards, title: { toString: "x" } },
    { ...shards, labels: "x" },
    { ...shards, labels: { a: [] } },
    { ...replay, reduced: [3] },
    { ...replay, reduced: deep(17), before: deep(17), replicas: [{ lane: "a", values: deep(17) }] },
    { ...replay, before: ["1", "2"] },
    { ...replay, after: [1] },
    { ...replay, replicas: [{ lane: "a", values: [1] }] },
    { ...replay, shape: [-1] },
    { ...replay, shape: deep(9) },
    { ...replay, positions: [[0]] },
    { ...replay, positions: [0, 1] },
    { ...replay, positions: [["a"], [1]] },
    { ...placement, variables: [] },
    { ...placement, variables: Array(201).fill(variable) },
    { ...placement, variables: [{ ...variable, bytes: 1.5 }] },
    { ...placement, variables: [{ ...variable, devices: Array(33).fill("a") }] },
    { ...placement, variables: deep(40).map((i) => ({ ...variable, devices: [`d${i as number}`] })) },
  ];
  for (const content of unfit) assert.equal(readPicture(content), null, JSON.stringify(content)?.slice(0, 200));
});

test("a long example is cut, and control characters are blanks", () => {
  const odd = {
    ...shards,
    title: "a\u202eb\u0000c",
    replicas: [{ ...shards.replicas[0], examples: ["x".repeat(99)] }],
  };
  const read = readPicture(odd) as Shards;
  assert.equal(read.title, "a b c");
  assert.equal(read.replicas[0]?.examples[0]?.length, 24);
});
