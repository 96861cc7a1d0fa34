import assert from "node:assert/strict";
import { test } from "node:test";

import { codeFrame, lineAfterEdits, lineInCode } from "../../../../../app/runs/frontend/error-lines";

const COLORED =
  "\x1b[96mCell\x1b[39m\x1b[96m \x1b[39m\x1b[32mIn[1]\x1b[39m\x1b[32m, line 2\x1b[39m, in \x1b[36mf\x1b[39m\x1b[94m(x)\x1b[39m\n" +
  "\x1b[92m      1\x1b[39m def f(x):\n\x1b[92m----> \x1b[39m\x1b[92m2\x1b[39m     return 1/x\n";
const SYNTAX = "  Cell In[4], line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n";

test("a frame of a cell says its line, the text there and the function", () => {
  assert.deepEqual(codeFrame(COLORED), { line: 2, text: "return 1/x", rest: ", in f(x)" });
});

test("a syntax error says its line without an arrow", () => {
  assert.deepEqual(codeFrame(SYNTAX), { line: 1, text: "x = = 1", rest: "" });
});

test("frames of files and the error itself are in no cell", () => {
  assert.equal(codeFrame("File ~/lib/json/__init__.py:346, in loads(s)\n--> 346     return decode(s)"), null);
  assert.equal(codeFrame("ZeroDivisionError: division by zero"), null);
  assert.equal(codeFrame("the Cell In[1], line 2"), null);
});

test("a line is in the code only if its text is the same", () => {
  const frame = { line: 2, text: "return 1/x", rest: "" };
  assert.equal(lineInCode(frame, "def f(x):\n    return 1/x"), 2);
  assert.equal(lineInCode(frame, "def f(x):\n    return 2/x"), null);
  assert.equal(lineInCode(frame, "def f(x):"), null);
  assert.equal(lineInCode({ ...frame, text: "" }, "\n\n"), null);
});

test("empty first lines count although IPython leaves them out", () => {
  assert.equal(lineInCode({ line: 1, text: "x = = 1", rest: "" }, "\n  \nx = = 1"), 3);
});

test("after edits a line is found again by its text, otherwise by its number", () => {
  const before = "a\nb\nc";
  assert.equal(lineAfterEdits(2, before, "new\na\nb\nc\nb"), 3);
  assert.equal(lineAfterEdits(3, before, "a\nb"), 2);
  assert.equal(lineAfterEdits(2, before, "x\ny\nz"), 2);
});
