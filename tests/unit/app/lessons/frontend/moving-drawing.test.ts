import assert from "node:assert/strict";
import { test } from "node:test";

import { isVisible } from "../../../../../app/lessons/frontend/moving-drawing";

/** The steps, of five, in which an element is visible. */
function visibleIn(steps: string): number[] {
  return [1, 2, 3, 4, 5].filter((step) => isVisible(steps, step));
}

test("an element is visible in its step, in several, or to the end", () => {
  assert.deepEqual(visibleIn("2"), [2]);
  assert.deepEqual(visibleIn("2-4"), [2, 3, 4]);
  assert.deepEqual(visibleIn("4-"), [4, 5]);
});
