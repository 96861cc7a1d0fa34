import assert from "node:assert/strict";
import { test } from "node:test";

import type { Run } from "../../../../../app/runs/frontend/protocol";
import { type RunListener, RunManager, type TrackedRun } from "../../../../../app/runs/frontend/run-manager";

const END = { kind: "finished", seq: 1, at_ms: 1, outcome: "ok", duration_ms: 1, first_output_ms: null };
Object.assign(globalThis, {
  window: globalThis,
  document: { documentElement: { lang: "en" }, querySelector: () => null },
});

function run(id: string, cell: string, state: Run["state"]): Run {
  const urls = { stream: `/${id}/stream`, events: `/${id}/events`, stop: `/${id}/stop` };
  const none = { outcome: null, position: null, wait_s: null, running_ms: null };
  const about = { lesson: "a/b", topology: "cpu", keras: 3, created_at: "", code: "", last_seq: 1, ahead: 0 };
  return { id, cell, state, urls, ...none, ...about };
}

/** A cell that notes which runs it has shown. */
class Shown implements RunListener {
  readonly runs: string[] = [];
  private end: () => void = () => undefined;
  readonly over = new Promise<void>((resolve) => (this.end = resolve));

  begins(entry: TrackedRun): void {
    this.runs.push(entry.run.id);
  }
  changed(): void {}
  waits(): void {}
  reconnecting(): void {}
  finished(): void {
    this.end();
  }
  vanished(): void {}
}

/** Answers requests: for the latest runs, and for the events of each as soon as they are released. */
function serve(latest: Run[], released: Promise<void>): void {
  globalThis.fetch = async (input) => {
    const url = String(input);
    if (url.startsWith("/runs?")) return Response.json({ runs: latest });
    if (url.includes("/stream?")) return new Response(`data: ${JSON.stringify(END)}\n\n`);
    await released;
    return Response.json({ events: [END], finished: true });
  };
}

test("earlier output, restored late, does not replace that of a run since", async () => {
  const [first, second] = [new Shown(), new Shown()];
  let release: () => void = () => undefined;
  const cells: Record<string, Shown> = { first, second };
  serve(
    [run("first-old", "first", "finished"), run("second-old", "second", "finished")],
    new Promise((resolve) => (release = resolve)),
  );
  const runs = new RunManager();
  const restored = runs.restore("a/b", (cell) => cells[cell]);

  runs.add(run("second-new", "second", "queued"), second);
  await second.over;
  release();
  await restored;

  assert.deepEqual([first.runs, second.runs], [["first-old"], ["second-new"]]);
});

test("a run that began while the earlier ones were being asked for is followed once", async () => {
  const cell = new Shown();
  const mine = run("new", "cell", "queued");
  serve([mine], Promise.resolve());
  const runs = new RunManager();
  const restored = runs.restore("a/b", () => cell);

  runs.add(mine, cell);
  await cell.over;
  await restored;

  assert.deepEqual(cell.runs, ["new"]);
  assert.equal(runs.anyUnfinished(), false);
});
