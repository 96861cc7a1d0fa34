import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { BACKGROUND, contrast, readableColor, themedColor } from "../../../../../app/runs/frontend/contrast";

const css = readFileSync("app/web/frontend/tokens.css", "utf8");
const token = (name: string): { light: string; dark: string } => {
  const found = new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(css);
  assert.ok(found, `no token --${name}`);
  return { light: found[1] as string, dark: found[2] as string };
};
const THEMES = ["light", "dark"] as const;

test("contrast is that of WCAG", () => {
  assert.equal(Math.round(contrast("#000000", "#ffffff")), 21);
  assert.equal(contrast("#777777", "#777777"), 1);
  assert.ok(Math.abs(contrast("#767676", "#ffffff") - 4.54) < 0.01);
});

test("the output's paper is the one in the tokens", () => {
  assert.deepEqual(token("sunken"), { ...BACKGROUND });
});

test("every ink of the tokens can be read on every paper, in both themes", () => {
  const inks = ["ink", "ink-2", "accent", "good", "bad", "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"];
  for (const ink of inks) {
    for (const paper of ["paper", "surface", "sunken"]) {
      for (const theme of THEMES) {
        const ratio = contrast(token(ink)[theme], token(paper)[theme]);
        assert.ok(ratio >= 4.5, `--${ink} on --${paper}, ${theme}: ${ratio.toFixed(2)}`);
      }
    }
  }
});

test("words on the accent can be read in both themes", () => {
  for (const theme of THEMES) {
    assert.ok(contrast(token("accent-ink")[theme], token("accent")[theme]) >= 4.5);
    assert.ok(contrast(token("accent-ink")[theme], token("accent-deep")[theme]) >= 4.5);
    assert.ok(contrast(token("accent")[theme], token("accent-soft")[theme]) >= 4.5);
  }
});

test("any color a program chooses becomes readable, and a readable one stays", () => {
  for (const color of ["#ffff00", "#00ff00", "#000080", "#ffffff", "#000000", "#808080"]) {
    for (const paper of Object.values(BACKGROUND))
      assert.ok(contrast(readableColor(color, paper), paper) >= 4.5, color);
  }
  assert.equal(readableColor("#0b3b66", BACKGROUND.light), "#0b3b66");
});

test("a color follows the theme", () => {
  assert.match(themedColor("#ffff00"), /^light-dark\(#[0-9a-f]{6}, #ffff00\)$/);
});
