import assert from "node:assert/strict";
import { test } from "node:test";

import { isMarked, stretches } from "../../../../../app/runs/frontend/traceback";

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
