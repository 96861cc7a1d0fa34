import assert from "node:assert/strict";
import { test } from "node:test";

import type { Finished, Outcome } from "../../../../../app/web/frontend/protocol";
import { ended } from "../../../../../app/web/frontend/status";

const WORDS = {
  "fact.first": "first output {time}",
  "fact.ran": "ran {time}",
  "outcome.crash": "Python crashed",
  "outcome.session": "The session could not go on",
};
const page = { getElementById: () => ({ textContent: JSON.stringify(WORDS) }), documentElement: { lang: "en" } };
(globalThis as unknown as { document: typeof page }).document = page;

const finished = (outcome: Outcome): Finished => ({
  kind: "finished", seq: 1, at_ms: 400, outcome, duration_ms: 60, first_output_ms: 325, peak_bytes: null, limit: null,
});

test("every figure says what it measures", () => {
  assert.deepEqual(ended(finished("ok"), "").facts, ["first output 325 ms", "ran 60 ms"]);
});

test("a session that Lockstep could not keep up is no crash of Python", () => {
  assert.equal(ended(finished("crash"), "").word, "Python crashed");
  const line = ended(finished("crash"), "", true);
  assert.equal(line.word, "The session could not go on");
  assert.equal(line.advice, "advice.session");
  assert.equal(line.tone, "bad");
});
