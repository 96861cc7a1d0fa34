import assert from "node:assert/strict";
import { test } from "node:test";

import { editsOf, fileName } from "../../../../../app/exports/frontend/downloads";

test("only the cells that differ from the lesson are sent, with empty ones", () => {
  const cells = [
    { name: "same", original: "x = 1", currentCode: "x = 1" },
    { name: "edited", original: "x = 1", currentCode: "x = 2" },
    { name: "emptied", original: "x = 1", currentCode: "" },
  ];
  assert.deepEqual(editsOf(cells), { edited: "x = 2", emptied: "" });
});

test("a file is saved under the name that the server gives it", () => {
  assert.equal(fileName('attachment; filename="first-slides.html"'), "first-slides.html");
  assert.equal(fileName(null), "download");
});
