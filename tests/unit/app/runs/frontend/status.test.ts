import assert from "node:assert/strict";
import { test } from "node:test";

import type { Finished, Outcome } from "../../../../../app/runs/frontend/protocol";
import { ended, waitingLine } from "../../../../../app/runs/frontend/status";

const WORDS = {
  "fact.first": "first output {time}",
  "fact.ran": "ran {time}",
  "fact.waited": "waited {time}",
  "limit.memory": "memory limit {value}",
  "limit.output_rate": "output limit {value} per second",
  "limit.processes": "limit of {value} processes",
  "limit.time": "time limit {value}",
  "outcome.crash": "Python crashed",
  "outcome.error": "Ended with {error}",
  "outcome.session": "The session could not continue",
  "outcome.someError": "Ended with an error",
  "state.runnerAway": "The runner is not responding",
  "state.unstored": "The server can't save the output right now",
};
const page = { getElementById: () => ({ textContent: JSON.stringify(WORDS) }), documentElement: { lang: "en" } };
(globalThis as unknown as { document: typeof page }).document = page;

const finished = (outcome: Outcome): Finished => ({
  kind: "finished",
  seq: 1,
  at_ms: 400,
  outcome,
  duration_ms: 60,
  first_output_ms: 325,
  peak_bytes: null,
  limit: null,
});

test("the first output never comes later than the end: what came before is a wait", () => {
  assert.deepEqual(ended({ ...finished("ok"), first_output_ms: 375 }).facts, [
    "waited 340 ms",
    "first output 35 ms",
    "ran 60 ms",
  ]);
  const notice = { ...finished("ok"), at_ms: 150, duration_ms: 60, first_output_ms: 20 };
  assert.deepEqual(ended(notice).facts, ["first output 0 ms", "ran 60 ms"]);
  assert.deepEqual(ended({ ...notice, duration_ms: 0 }).facts, []);
});

test("an error is named unless its output was deleted", () => {
  assert.equal(ended(finished("error"), { errorName: "KeyError" }).word, "Ended with KeyError");
  assert.equal(ended(finished("error")).word, "Ended with an error");
});

test("output that cannot be stored is the server's trouble, not the runner's", () => {
  const word = (state: "reconnecting" | "unstored"): string => waitingLine({ state, position: null, ahead: 0 }).word;
  assert.equal(word("reconnecting"), "The runner is not responding");
  assert.equal(word("unstored"), "The server can't save the output right now");
});

test("a session that Lockstep could not keep up is no crash of Python", () => {
  assert.equal(ended(finished("crash")).word, "Python crashed");
  const line = ended(finished("crash"), { sessionFailed: true });
  assert.equal(line.word, "The session could not continue");
  assert.equal(line.advice, "advice.session");
  assert.equal(line.tone, "bad");
});

test("a limit is named, with its value in units for people", () => {
  const met = (name: string, value: number, unit: "s" | "bytes" | "bytes/s" | "count"): string | undefined =>
    ended({ ...finished("error"), limit: { name, value, unit } }).facts[0];
  assert.equal(met("time", 600, "s"), "time limit 10 min");
  assert.equal(met("memory", 2048 * 1024 ** 2, "bytes"), "memory limit 2 GiB");
  assert.equal(met("output_rate", 4 * 1024 ** 2, "bytes/s"), "output limit 4 MiB per second");
  assert.equal(met("processes", 512, "count"), "limit of 512 processes");
});

test("the advice is for the limit that was met, also where the outcome has another name", () => {
  assert.equal(
    ended({ ...finished("output"), limit: { name: "events", value: 9, unit: "count" } }).advice,
    "advice.events",
  );
  assert.equal(ended(finished("timeout")).advice, "advice.time");
  assert.equal(ended(finished("files")).advice, "advice.open_files");
});

test("a name that is missing in a session without the cells above is said to be", () => {
  assert.equal(ended(finished("error"), { errorName: "NameError", cellsMissing: true }).advice, "advice.cellsMissing");
  assert.equal(ended(finished("error"), { errorName: "WorkerEnded", workerEnded: true }).advice, "advice.workerEnded");
  assert.equal(ended(finished("error"), { errorName: "NameError" }).advice, "");
});
