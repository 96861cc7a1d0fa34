import assert from "node:assert/strict";
import { test } from "node:test";

import { PLAIN, restyle } from "../../../../../app/runs/frontend/ansi";

const after = (...codes: string[]) => codes.reduce(restyle, PLAIN);

test("a style is built up by codes and taken down by a reset", () => {
  const style = after("1", "31");
  assert.equal(style.bold, true);
  assert.equal(style.fg, 1);
  assert.equal(restyle(style, ""), PLAIN);
  assert.equal(restyle(style, "0"), PLAIN);
});

test("equal styles are the same object", () => {
  assert.equal(after("1;32"), after("32", "1"));
});

test("bright colors are the second half of the palette", () => {
  assert.equal(after("97").fg, 15);
  assert.equal(after("100").bg, 8);
});

test("a color of the 256 is the palette, the cube or a grey", () => {
  assert.equal(after("38;5;9").fg, 9);
  assert.equal(after("38;5;16").fg, "#000000");
  assert.equal(after("38;5;196").fg, "#ff0000");
  assert.equal(after("48;5;255").bg, "#eeeeee");
  assert.equal(after("38;5;300").fg, null);
});

test("true color is taken as it is, and codes behind it still count", () => {
  const style = after("38;2;18;52;86;4");
  assert.equal(style.fg, "#123456");
  assert.equal(style.underline, true);
});

test("a color out of range changes nothing", () => {
  assert.equal(after("38;2;1;2"), PLAIN);
  assert.equal(after("38;2;1;2;999"), PLAIN);
  assert.equal(after("38"), PLAIN);
  assert.equal(after("77"), PLAIN);
});
