import assert from "node:assert/strict";
import { test } from "node:test";

import type { RunEvent } from "../../../../../app/runs/frontend/protocol";
import { hintInLane, laneOf, Transcript } from "../../../../../app/runs/frontend/transcript";

const text = (seq: number, text: string): RunEvent => ({ kind: "text", seq, at_ms: seq, stream: "stdout", text });
const display = (seq: number, plain: string, more: Partial<Extract<RunEvent, { kind: "display" }>> = {}): RunEvent => ({
  kind: "display",
  seq,
  at_ms: seq,
  data: { "text/plain": plain },
  metadata: {},
  display_id: null,
  update: false,
  result: false,
  ...more,
});
const clear = (seq: number, wait: boolean): RunEvent => ({ kind: "clear", seq, at_ms: seq, wait });
const notice = (seq: number, text = "stand-in", lane: string | null = null): RunEvent => ({
  kind: "notice",
  seq,
  at_ms: seq,
  code: "x",
  values: {},
  text,
  limit: null,
  lane,
});

function after(...events: RunEvent[]): Transcript {
  const transcript = new Transcript();
  for (const event of events) transcript.apply(event);
  return transcript;
}

test("an event seen twice counts once", () => {
  const transcript = after(text(1, "a\n"), text(2, "b\n"));
  assert.equal(transcript.apply(text(2, "b\n")), "known");
  assert.equal(transcript.text(), "a\nb\n");
});

test("a gap is refused, and the missing event can still come", () => {
  const transcript = after(text(1, "a\n"));
  assert.equal(transcript.apply(text(3, "c\n")), "gap");
  assert.equal(transcript.apply(text(2, "b\n")), "applied");
  assert.equal(transcript.apply(text(3, "c\n")), "applied");
  assert.equal(transcript.text(), "a\nb\nc\n");
});

test("a notice that output was deleted bridges the gap that it leaves", () => {
  for (const read of [[], [text(1, "a\n"), text(2, "b\n")]]) {
    const transcript = after(...read, { ...notice(900, "deleted"), code: "output-expired" } as RunEvent);
    assert.equal(
      transcript.apply({ kind: "finished", seq: 901, at_ms: 901, outcome: "ok", duration_ms: 1 } as RunEvent),
      "applied",
    );
    assert.equal(transcript.text(), `${read.length ? "a\nb\n" : ""}[Lockstep] deleted\n`);
    assert.equal(transcript.finished?.outcome, "ok");
  }
});

test("any division into pieces gives the same text", () => {
  const whole = "Epoch 1\n\x1b[1m1/2\x1b[0m\r\x1b[1m2/2\x1b[0m\nünïcode ━━ 😀\n";
  const once = after(text(1, whole)).text();
  for (const size of [1, 2, 3, 7]) {
    const pieces = whole.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];
    assert.equal(after(...pieces.map((piece, i) => text(i + 1, piece))).text(), once, `in pieces of ${size}`);
  }
});

test("a display with an id is updated where it stands", () => {
  const transcript = after(
    display(1, "0 %", { display_id: "p" }),
    text(2, "below\n"),
    display(3, "100 %", { display_id: "p", update: true }),
  );
  assert.equal(transcript.text(), "100 %\nbelow\n");
  assert.equal(transcript.items.length, 2);
});

test("an update without its display shows nothing", () => {
  assert.equal(after(display(1, "lost", { display_id: "q", update: true })).items.length, 0);
});

test("clearing takes the output and leaves Lockstep's own words", () => {
  const transcript = after(notice(1), text(2, "old\n"), clear(3, false), text(4, "new\n"));
  assert.equal(transcript.text(), "[Lockstep] stand-in\nnew\n");
  assert.equal(transcript.clearings, 1);
});

test("clearing that waits comes with the next output", () => {
  const transcript = after(text(1, "old\n"), clear(2, true));
  assert.equal(transcript.text(), "old\n");
  transcript.apply(text(3, "new\n"));
  assert.equal(transcript.text(), "new\n");
});

test("text behind a display starts a row of its own", () => {
  assert.equal(after(text(1, "a"), display(2, "[picture]"), text(3, "b")).text(), "a\n[picture]\nb\n");
});

test("an error and the end are kept apart", () => {
  const transcript = after(
    { kind: "started", seq: 1, at_ms: 1 },
    {
      kind: "error",
      seq: 2,
      at_ms: 2,
      name: "ValueError",
      value: "no",
      frames: [{ text: "\x1b[31mValueError\x1b[0m: no", own: true }],
    },
    {
      kind: "finished",
      seq: 3,
      at_ms: 3,
      outcome: "error",
      duration_ms: 2,
      first_output_ms: 1,
      peak_bytes: null,
      limit: null,
    },
  );
  assert.equal(transcript.started, true);
  assert.equal(transcript.finished?.outcome, "error");
  assert.equal(transcript.text(), "ValueError: no\n");
});

test("100,000 lines take well under a second of one processor", () => {
  const transcript = new Transcript();
  const begun = process.cpuUsage();
  for (let seq = 1; seq <= 1_000; seq++) {
    transcript.apply(text(seq, Array.from({ length: 100 }, (_, i) => `line ${seq * 100 + i}\n`).join("")));
  }
  assert.equal(transcript.items.length, 100_000);
  const { user, system } = process.cpuUsage(begun);
  assert.ok(user + system < 1_500_000);
});

const from = (lane: string | null, event: RunEvent): RunEvent => ({ ...event, lane }) as RunEvent;

test("lanes that write by turns do not cut each other's lines", () => {
  const transcript = after(
    from("worker 0", text(1, "step 1")),
    from("worker 1", text(2, "step 1\n")),
    text(3, "all\n"),
    from("worker 0", text(4, " done\n")),
  );
  assert.equal(transcript.text(), "[worker 0] step 1 done\n[worker 1] step 1\nall\n");
  assert.ok(transcript.inLanes);
  assert.deepEqual(transcript.items.map(laneOf), ["worker 0", "worker 1", null]);
});

test("a lane clears what it wrote itself, and no other", () => {
  const transcript = after(
    from("worker 0", text(1, "old\n")),
    from("worker 1", text(2, "stays\n")),
    text(3, "stays too\n"),
    from("worker 0", clear(4, true)),
    from("worker 1", text(5, "more\n")),
    from("worker 0", text(6, "new\n")),
  );
  assert.equal(transcript.text(), "[worker 1] stays\nstays too\n[worker 1] more\n[worker 0] new\n");
});

test("two workers may give their displays the same name", () => {
  const named = (seq: number, lane: string, plain: string, update: boolean): RunEvent =>
    from(lane, display(seq, plain, { display_id: "x", update }));
  const transcript = after(
    named(1, "worker 0", "a", false),
    named(2, "worker 1", "b", false),
    named(3, "worker 1", "c", true),
  );
  assert.equal(transcript.text(), "[worker 0] a\n[worker 1] c\n");
});

test("every line of what a lane shows has its name, and events of old have no lane", () => {
  assert.equal(after(from("replica 0", display(1, "a\nb"))).text(), "[replica 0] a\n[replica 0] b\n");
  const old = after(text(1, "a\n"));
  assert.ok(!old.inLanes);
  assert.deepEqual(old.items.map(laneOf), [null]);
});

test("a notice that comes again and again in its lane is one line with a number", () => {
  const ended = "worker 1 has ended (SIGKILL).";
  const ends = Array.from({ length: 40 }, (_, i) => notice(2 * i + 1, ended, "worker 1"));
  const elsewhere = Array.from({ length: 40 }, (_, i): RunEvent => {
    const seq = 2 * i + 2;
    return { kind: "text", seq, at_ms: seq, stream: "stdout", text: "on\n", lane: "worker 0" };
  });
  const transcript = after(...ends.flatMap((end, i) => [end, elsewhere[i] as RunEvent]));
  const notices = transcript.items.filter((item) => item.kind === "notice");
  assert.deepEqual(
    notices.map((item) => item.count),
    [40],
  );
  assert.ok(transcript.text().includes(`[worker 1] [Lockstep] ${ended} (40 times)\n`));
  assert.ok(transcript.takeTouched().has(notices[0] as (typeof notices)[0]));
});

test("a notice is said again once something else was said in its lane", () => {
  const transcript = after(notice(1), notice(2, "another"), notice(3), text(4, "x\n"), notice(5));
  assert.equal(transcript.items.filter((item) => item.kind === "notice").length, 4);
  assert.ok(!transcript.text().includes("times"));
});

test("what checks said is kept apart from the output, each once", () => {
  const check: RunEvent = {
    kind: "check",
    seq: 2,
    at_ms: 2,
    name: "It is the mean",
    outcome: "failed",
    message: "It is {factor} times too large.",
    values: { factor: "4" },
    got: "4",
    wanted: null,
  };
  const transcript = after(text(1, "printed\n"), check, check);
  assert.deepEqual(transcript.checks, [check]);
  assert.equal(transcript.text(), "printed\n");
});

test("a lane waits until anything else comes from it, or the run ends", () => {
  const waits = (seq: number, lane: string, other: string): RunEvent => ({
    ...(notice(seq, "", lane) as Extract<RunEvent, { kind: "notice" }>),
    code: "waiting-for-paused",
    values: { task: lane, other },
  });
  const transcript = after(waits(1, "worker 0", "worker 1"), text(2, "the cell's own\n"), waits(3, "chief", "ps 0"));
  assert.deepEqual(Object.fromEntries(transcript.waitsFor), { "worker 0": "worker 1", chief: "ps 0" });
  transcript.apply({ kind: "metric", seq: 4, at_ms: 4, step: 1, per: "step", values: {}, lane: "worker 0" });
  assert.deepEqual(Object.fromEntries(transcript.waitsFor), { chief: "ps 0" });
  transcript.apply({
    kind: "finished",
    seq: 5,
    at_ms: 5,
    outcome: "ok",
    duration_ms: 1,
    first_output_ms: null,
    peak_bytes: null,
    limit: null,
  });
  assert.equal(transcript.waitsFor.size, 0);
});

test("a hint in a lane is the notice that follows an error there", () => {
  const error = (seq: number, lane: string | null): RunEvent =>
    from(lane, { kind: "error", seq, at_ms: seq, name: "ValueError", value: "", frames: [] });
  const hint = (...events: RunEvent[]): string | undefined => hintInLane(after(...events).items)?.text;

  assert.equal(hint(error(1, "worker 0"), error(2, "worker 1"), notice(3, "use Keras 2", "worker 0")), "use Keras 2");
  assert.equal(
    hint(notice(1, "early", "worker 0"), error(2, "worker 0"), notice(3, "elsewhere", "worker 1")),
    undefined,
  );
  assert.equal(hint(error(1, "worker 0"), from("worker 0", text(2, "more")), notice(3, "late", "worker 0")), undefined);
  assert.equal(hint(error(1, null), notice(2, "in sight", null)), undefined);
  const waits = { ...notice(1, "still waits", "worker 1"), code: "no-steps-counted" } as RunEvent;
  assert.equal(hint(waits, from("worker 1", text(2, "more"))), "still waits", "on a phone, the lane is folded");
});
