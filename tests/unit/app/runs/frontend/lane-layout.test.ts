import assert from "node:assert/strict";
import { test } from "node:test";
import { laneColor } from "../../../../../app/runs/frontend/lane-color";
import { LaneLayout, MOST_LANES, OTHER_LANES, sortLanes } from "../../../../../app/runs/frontend/lane-layout";
import type { RunEvent } from "../../../../../app/runs/frontend/protocol";
import { type Item, Transcript } from "../../../../../app/runs/frontend/transcript";

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

test("text that the cell wrote before any lane is above, and later text below", () => {
  const layout = new LaneLayout();
  const { items } = transcriptOf([null, "a"], ["worker 1", "b"], [null, "c"], ["worker 0", "d"], ["worker 1", "e"]);
  layout.take(items);
  assert.deepEqual(words(layout.above), ["a"]);
  assert.deepEqual(words(layout.below), ["c"]);
  assert.deepEqual(
    [...layout.lanes].map(([lane, mine]) => [lane, words(mine)]),
    [
      ["worker 1", ["b", "e"]],
      ["worker 0", ["d"]],
    ],
  );
});

test("items that come in pieces are taken once", () => {
  const { items } = transcriptOf(["worker 0", "a"], ["worker 1", "b"], ["worker 0", "c"]);
  const layout = new LaneLayout();
  for (let n = 0; n <= items.length; n++) layout.take(items.slice(0, n));
  assert.deepEqual(words(layout.lanes.get("worker 0") ?? []), ["a", "c"]);
});

test("a program that invents names gets a bounded number of lanes, and nothing is lost", () => {
  const { items } = transcriptOf(...Array.from({ length: 500 }, (_, i): [string, string] => [`name ${i}`, String(i)]));
  const layout = new LaneLayout();
  layout.take(items);
  assert.equal(layout.lanes.size, MOST_LANES);
  assert.equal(layout.lanes.get(OTHER_LANES)?.length, 500 - MOST_LANES + 1);
});

test("lanes are in the order in which people look for them", () => {
  assert.deepEqual(
    sortLanes([
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

test("a worker has the color of its first replica, and a process that does not train has the color of text", () => {
  const colors = (topology: string, ...lanes: string[]): string[] => lanes.map((lane) => laneColor(lane, topology));
  assert.deepEqual(colors("gpu:4", "replica 0", "replica 3", "replica 9"), ["r0", "r3", "r1"]);
  assert.deepEqual(colors("workers:2xgpu:2", "worker 0", "worker 1", "worker 1 · replica 3"), ["r0", "r2", "r3"]);
  assert.deepEqual(colors("workers:3+chief+evaluator", "chief", "worker 0", "worker 1", "evaluator"), [
    "r0",
    "r1",
    "r2",
    "r-ink",
  ]);
  assert.deepEqual(colors("ps:2+1", "coordinator", "worker 0", "worker 1", "ps 0"), ["r-ink", "r0", "r1", "r-ink"]);
  assert.deepEqual(colors("cpu", "whatever 3"), ["r-ink"]);
});
