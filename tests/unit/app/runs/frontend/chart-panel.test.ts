import assert from "node:assert/strict";
import { test } from "node:test";

import { titleOf, trainingTitle } from "../../../../../app/runs/frontend/chart-panel";
import { panelsOf, Series } from "../../../../../app/runs/frontend/series";

const WORDS = { "chart.loss": "Loss", "chart.accuracy": "Accuracy", "chart.training": "Training {number}" };
const page = { getElementById: () => ({ textContent: JSON.stringify(WORDS) }), documentElement: { lang: "en" } };
(globalThis as unknown as { document: typeof page }).document = page;

/** The titles of a training's panels. */
function titles(values: Record<string, number>): string[] {
  const series = new Series();
  series.read([{ kind: "metric", seq: 1, at_ms: 1, step: 1, per: "epoch", values }]);
  return panelsOf(series.trainingRuns).map(titleOf);
}

test("a panel of losses or of accuracies has a word for them", () => {
  assert.deepEqual(titles({ loss: 2, val_loss: 3, accuracy: 0.5, val_accuracy: 0.4 }), ["Loss", "Accuracy"]);
  assert.deepEqual(titles({ sparse_categorical_accuracy: 0.5, acc: 0.1 }), ["Accuracy"]);
});

test("a panel of other metrics is named by them, and never called an accuracy", () => {
  assert.deepEqual(titles({ precision: 0.5, recall: 0.5 }), ["precision, recall"]);
  assert.deepEqual(titles({ accuracy: 0.5, auc: 0.9, recall: 0.1, f1: 0.1 }), ["accuracy, auc, recall…"]);
  assert.deepEqual(titles({ perplexity: 40 }), ["perplexity"]);
});

test("a training has the name of its model, or a number", () => {
  const series = new Series();
  const metric = { kind: "metric", seq: 1, at_ms: 1, per: "step", values: { loss: 1 } } as const;
  series.read([
    { ...metric, step: 2, training: "small" },
    { ...metric, step: 1, training: "small" },
    { ...metric, step: 1 },
  ]);
  assert.deepEqual(series.trainingRuns.map(trainingTitle), ["small", "small (2)", "Training 3"]);
});
