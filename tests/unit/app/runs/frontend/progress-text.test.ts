import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { progressText, timeLeft } from "../../../../../app/runs/frontend/progress-text";
import type { Progress } from "../../../../../app/runs/frontend/protocol";
import { formatNumber } from "../../../../../app/web/frontend/format-number";

const template = readFileSync("app/web/templates/strings.html", "utf8");
const words = Object.fromEntries(
  [...template.matchAll(/"(progress\.[\w.]+)": _\("([^"]+)"\)/g)].map(([, key, text]) => [key, text]),
);
Object.assign(globalThis, {
  document: {
    documentElement: { lang: "en" },
    getElementById: () => ({
      textContent: JSON.stringify({ ...words, "progress.steps.other": "{done} of {count} steps" }),
    }),
  },
});

const progress = (done: number, more: Partial<Progress> = {}): Progress => ({
  kind: "progress",
  seq: 1,
  at_ms: 1,
  label: "fit",
  done,
  total: 1_200,
  unit: "step",
  left_s: null,
  ...more,
});

test("what is done, of how much, and the time left", () => {
  assert.equal(progressText(progress(600, { left_s: 130 })), "600 of 1,200 steps · about 2 minutes left");
  assert.equal(progressText(progress(1_200, { left_s: 0 })), "1,200 of 1,200 steps");
  assert.equal(progressText(progress(3, { total: null })), "3 so far");
  assert.equal(progressText(progress(3, { total: 9, unit: "item" })), "3 of 9");
});

test("only what Keras begins is being traced", () => {
  assert.match(progressText(progress(0)), /tracing the model/);
  assert.equal(progressText(progress(0, { label: "files" })), "0 of 1,200 steps");
});

test("the time left is round, and never longer in words than it helps", () => {
  const told = [0, 4.4, 12, 52, 56, 89, 3_540, 3_600, 4_000, 7_900, 90_000].map(timeLeft);
  assert.deepEqual(told, [
    "1 second",
    "4 seconds",
    "10 seconds",
    "50 seconds",
    "1 minute",
    "1 minute",
    "59 minutes",
    "1 hour",
    "1 hour",
    "2 hours 10 minutes",
    "25 hours",
  ]);
});

test("a number is as short as it may be, and what is none is a word", () => {
  assert.deepEqual([0, 0.5, 1234.56, -0.25, 1e-5, -2.5e7, 0.001, NaN, Infinity, -Infinity].map(formatNumber), [
    "0",
    "0.5",
    "1,235",
    "−0.25",
    "1e−5",
    "−2.5e7",
    "0.001",
    "nan",
    "inf",
    "−inf",
  ]);
});
