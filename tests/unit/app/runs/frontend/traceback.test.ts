import assert from "node:assert/strict";
import { test } from "node:test";

import { isMarked, isNumbered, stretches } from "../../../../../app/runs/frontend/traceback";

test("neighboring frames of one kind fold together, in their order", () => {
  const frames = ["own a", "lib b", "lib c", "own d"].map((text) => ({ text, own: text.startsWith("own") }));
  assert.deepEqual(
    stretches(frames).map((part) => [part.own, part.frames.map((frame) => frame.text)]),
    [
      [true, ["own a"]],
      [false, ["lib b", "lib c"]],
      [true, ["own d"]],
    ],
  );
});

test("a traceback without frames has no stretches", () => {
  assert.deepEqual(stretches([]), []);
});

test("a line is marked if the next one has nothing but marks", () => {
  for (const marks of ["        ^", "    ~~~^~~", "^^^^"]) assert.ok(isMarked(marks), marks);
  for (const other of [undefined, "", "   ", "x ^ y", "SyntaxError: invalid syntax"])
    assert.ok(!isMarked(other), other);
});

test("lines of code are those with a number, and a message is none", () => {
  for (const code of [
    "      5     x = 1",
    "----> 5 x = 1",
    "--> 105     return x",
    "     12 ",
    "   (...)    290   nothing.",
  ])
    assert.ok(isNumbered(code), code);
  for (const other of ["ValueError: 3 of 4", "2 root error(s) found.", "  (0) INVALID_ARGUMENT: shapes", "", "  ^"])
    assert.ok(!isNumbered(other), other);
});
