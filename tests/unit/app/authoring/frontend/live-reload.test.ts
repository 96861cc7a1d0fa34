import assert from "node:assert/strict";
import { test } from "node:test";

import { firstDifference } from "../../../../../app/authoring/frontend/live-reload";

test("a page is shown at the first part that differs", () => {
  assert.equal(firstDifference(["a", "b", "c"], ["a", "b", "c"]), null);
  assert.equal(firstDifference(["a", "b", "c"], ["a", "x", "c"]), 1);
  assert.equal(firstDifference(["a", "b"], ["a", "b", "c"]), 2);
});

test("where the end was removed, the new end is shown", () => {
  assert.equal(firstDifference(["a", "b", "c"], ["a"]), 0);
  assert.equal(firstDifference(["a"], []), 0);
});
