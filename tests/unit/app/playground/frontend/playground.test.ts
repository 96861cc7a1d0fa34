import assert from "node:assert/strict";
import { test } from "node:test";

import { withoutOutputs } from "../../../../../app/playground/frontend/playground";

test("a notebook is sent without outputs, attachments and widgets, and with everything else", () => {
  const code = { cell_type: "code", source: ["x"], outputs: [{ data: "a large picture" }], execution_count: 3 };
  const text = { cell_type: "markdown", source: "# A", attachments: { "a.png": {} } };
  const metadata = { kernelspec: { name: "python3" }, widgets: { state: {} } };
  const sent: unknown = JSON.parse(withoutOutputs(JSON.stringify({ nbformat: 4, metadata, cells: [code, text] })));
  assert.deepEqual(sent, {
    nbformat: 4,
    metadata: { kernelspec: { name: "python3" } },
    cells: [
      { ...code, outputs: [] },
      { ...text, attachments: {} },
    ],
  });
});

test("anything else is sent as it is, so that the server can say what is wrong with it", () => {
  for (const text of ["", "print(1)", "[1]", "null", '{"cells": 5}', "{", '{"worksheets": []}', '{"cells": ["abc"]}'])
    assert.equal(withoutOutputs(text), text);
  const strange = '{"cells":[],"metadata":"abc"}';
  assert.equal(withoutOutputs(strange), strange);
});
