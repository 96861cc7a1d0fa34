import assert from "node:assert/strict";
import { test } from "node:test";

import { Arrangement, inOrder, MOST_LANES, OTHERS } from "../../../../../app/web/frontend/arrangement";
import { laneColour } from "../../../../../app/web/frontend/lane-colour";
import type { RunEvent } from "../../../../../app/web/frontend/protocol";
import { type Item, Transcript } from "../../../../../app/web/frontend/transcript";

function transcriptOf(...lines: [lane: string | null, text: string][]): Transcript {
  const transcript = new Transcript();
  lines.forEach(([lane, text], i) => {
    const event: RunEvent = { kind: "text", seq: i + 1, at_ms: i, stream: "stdout", text: `${text}\n`, lane };
    transcript.apply(event);
  });
  return transcript;
}

const words = (items: Item[]): string[] =>
  items.map((item) => (item.kind === "row" ? item.spans.map((s) => s.text).join("") : item.kind));

test("what the cell wrote before any lane stands above, what it wrote later below", () => {
  const arrangement = new Arrangement();
  const { items } = transcriptOf([null, "a"], ["worker 1", "b"], [null, "c"], ["worker 0", "d"], ["worker 1", "e"]);
  arrangement.take(items);
  assert.deepEqual(words(arrangement.above), ["a"]);
  assert.deepEqual(words(arrangement.below), ["c"]);
  assert.deepEqual(
    [...arrangement.lanes].map(([lane, mine]) => [lane, words(mine)]),
    [
      ["worker 1", ["b", "e"]],
      ["worker 0", ["d"]],
    ],
  );
});

test("items that come in pieces are taken once", () => {
  const { items } = transcriptOf(["worker 0", "a"], ["worker 1", "b"], ["worker 0", "c"]);
  const arrangement = new Arrangement();
  for (let n = 0; n <= items.length; n++) arrangement.take(items.slice(0, n));
  assert.deepEqual(words(arrangement.lanes.get("worker 0") ?? []), ["a", "c"]);
});

test("a program that invents names gets a bounded number of lanes, and nothing is lost", () => {
  const { items } = transcriptOf(...Array.from({ length: 500 }, (_, i): [string, string] => [`name ${i}`, String(i)]));
  const arrangement = new Arrangement();
  arrangement.take(items);
  assert.equal(arrangement.lanes.size, MOST_LANES);
  assert.equal(arrangement.lanes.get(OTHERS)?.length, 500 - MOST_LANES + 1);
});

test("lanes stand in the order in which people look for them", () => {
  assert.deepEqual(
    inOrder([
      "odd",
      "replica 1",
      "worker 2 · replica 1",
      "evaluator",
      "worker 10",
      "ps 0",
      "replica 0",
      "worker 2",
      "chief",
      "coordinator",
      "a b",
    ]),
    [
      "coordinator",
      "chief",
      "worker 2",
      "worker 2 · replica 1",
      "worker 10",
      "ps 0",
      "evaluator",
      "replica 0",
      "replica 1",
      "odd",
      "a b",
    ],
  );
});

test("a worker has the colour of its first replica, and who trains nothing is ink", () => {
  const colours = (topology: string, ...lanes: string[]): string[] => lanes.map((lane) => laneColour(lane, topology));
  assert.deepEqual(colours("gpu:4", "replica 0", "replica 3", "replica 9"), ["r0", "r3", "r1"]);
  assert.deepEqual(colours("workers:2xgpu:2", "worker 0", "worker 1", "worker 1 · replica 3"), ["r0", "r2", "r3"]);
  assert.deepEqual(colours("workers:3+chief+evaluator", "chief", "worker 0", "worker 1", "evaluator"), [
    "r0",
    "r1",
    "r2",
    "r-ink",
  ]);
  assert.deepEqual(colours("ps:2+1", "coordinator", "worker 0", "worker 1", "ps 0"), ["r-ink", "r0", "r1", "r-ink"]);
  assert.deepEqual(colours("cpu", "whatever 3"), ["r-ink"]);
});
