import assert from "node:assert/strict";
import { test } from "node:test";

import { withoutStyles } from "../../../../../app/runs/frontend/display-html";

test("styles are left out, and nothing else", () => {
  const table = '<table class="dataframe"><tr><td>a < b</td></tr></table>';
  assert.equal(withoutStyles(`<style scoped>.a > b { c: d }</style>${table}`), table);
  assert.equal(withoutStyles('<tr style="text-align: right;">'), "<tr>");
});

test("a text of unfinished tags takes no longer than another one", () => {
  for (const part of ["<style", "<style>", ' style="', "<style "]) {
    const text = part.repeat(1_000_000 / part.length);
    const before = process.cpuUsage().user;
    withoutStyles(text);
    assert.ok(process.cpuUsage().user - before < 10e6, part); // in microseconds; before, minutes
  }
});
