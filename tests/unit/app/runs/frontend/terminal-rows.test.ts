import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stream } from "../../../../../app/runs/frontend/protocol";
import { LONGEST_ROW, MOST_SPANS, plain, type Row, TerminalRows } from "../../../../../app/runs/frontend/terminal-rows";

function shown(...pieces: (string | [Stream, string])[]): string[] {
  const rows: Row[] = [];
  const screen = new TerminalRows(
    (row) => rows.push(row),
    () => undefined,
  );
  for (const piece of pieces) {
    if (typeof piece === "string") screen.write("stdout", piece);
    else screen.write(...piece);
  }
  return rows.map(plain);
}

test("text comes in rows, an empty one included", () => {
  assert.deepEqual(shown("a\n\nb\n"), ["a", "", "b"]);
});

test("a carriage return goes back and what follows writes over", () => {
  assert.deepEqual(shown("loss 0.9\rloss 0.5"), ["loss 0.5"]);
  assert.deepEqual(shown("abcdef\rXY"), ["XYcdef"]);
});

test("CR LF is one end of line", () => {
  assert.deepEqual(shown("a\r\nb\r\n"), ["a", "b"]);
});

test("backspaces go back, but not past the start", () => {
  assert.deepEqual(shown("abc\b\b\bxy"), ["xyc"]);
  assert.deepEqual(shown("\b\b\bok"), ["ok"]);
  assert.deepEqual(shown("😀\bx"), [`${"x\ude00".slice(0, 1)}\ude00`]);
});

test("the progress bar of Keras redraws in place", () => {
  const bar = (n: number) =>
    `${"\b".repeat(40)}\r\x1b[1m${n}/2\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m0s\x1b[0m loss: 0.${n}`;
  assert.deepEqual(shown("Epoch 1/1\n", bar(1), bar(2), "\n"), ["Epoch 1/1", "2/2 ━━━━━━ 0s loss: 0.2"]);
});

test("erasing takes the rest, the start or all of the row", () => {
  assert.deepEqual(shown("abcdef\r\x1b[K"), [""]);
  assert.deepEqual(shown("abcdef\x1b[2D\x1b[1K"), ["    ef"]);
  assert.deepEqual(shown("abcdef\x1b[2K\rx"), ["x"]);
});

test("nested bars move up and down between their rows", () => {
  assert.deepEqual(shown("outer 1\ninner 1\x1b[A\router 2\n\rinner 2"), ["outer 2", "inner 2"]);
});

test("an escape sequence may come in pieces", () => {
  assert.deepEqual(shown("a\x1b", "[3", "1mb"), ["ab"]);
  assert.deepEqual(shown("x\x1b]8;;http://example", ".org\x1b\\link\x1b]8;;\x07"), ["xlink"]);
});

test("what is no text and no known command leaves no trace", () => {
  assert.deepEqual(shown("a\x07\x00\x1b[?25l\x1b[5;5Hb\x1b(Bc"), ["abc"]);
});

test("a tab reaches the next stop of eight", () => {
  assert.deepEqual(shown("ab\tc"), ["ab      c"]);
});

test("a warning in the middle of a bar gets a row of its own and the bar goes on in its own", () => {
  assert.deepEqual(shown("1/2", ["stderr", "WARNING\n"], "\r2/2\n", "done"), ["2/2", "WARNING", "done"]);
});

test("each row knows its stream, and styles stay with their stream", () => {
  const rows: Row[] = [];
  const screen = new TerminalRows(
    (row) => rows.push(row),
    () => undefined,
  );
  screen.write("stderr", "\x1b[31mred\n");
  screen.write("stdout", "plain\n");
  assert.deepEqual(
    rows.map((row) => row.stream),
    ["stderr", "stdout"],
  );
  assert.deepEqual(
    rows.map((row) => row.spans[0]?.style.fg),
    [1, null],
  );
});

function one(...pieces: string[]): Row {
  const rows: Row[] = [];
  const screen = new TerminalRows(
    (row) => rows.push(row),
    () => undefined,
  );
  for (const piece of pieces) screen.write("stdout", piece);
  assert.equal(rows.length, 1);
  return rows[0] as Row;
}

test("the cursor moves no further than a wide terminal, however often it is sent", () => {
  assert.equal(plain(one(`${"\x1b[9999C".repeat(60_000)}x`)).length, 1_001);
  assert.equal(plain(one("\x1b[9999Gx")).length, 1_001);
  assert.equal(plain(one(`${"a".repeat(2_000)}\x1b[5Cb`)).length, 2_001);
});

test("a row is shown up to a bound and keeps all of its text", () => {
  const row = one("a".repeat(LONGEST_ROW - 1), "bcd", "e");
  assert.equal(row.length, LONGEST_ROW);
  assert.equal(row.rest, "cde");
  assert.ok(plain(row).endsWith("abcde"));
});

test("writing over a long row or erasing it takes what was folded too", () => {
  const long = "a".repeat(LONGEST_ROW + 10);
  assert.equal(plain(one(long, "\r", "b".repeat(LONGEST_ROW + 3))), "b".repeat(LONGEST_ROW + 3));
  assert.equal(plain(one(long, "\r\x1b[Kb")), "b");
  assert.equal(plain(one(long, "\x1b[2K\rb")), "b");
  assert.equal(plain(one("a".repeat(5_000), "\x1b[2Kb")), `${" ".repeat(5_000)}b`);
});

test("a row of 150,000 colors has a bounded number of spans and is never searched while it grows", () => {
  const colors = Array.from({ length: 150_000 }, (_, i) => `\x1b[3${1 + (i % 7)}mx`).join("");
  const rows: Row[] = [];
  let reads = 0;
  const screen = new TerminalRows(
    (row) => {
      row.spans = new Proxy(row.spans, {
        get(spans, key): unknown {
          reads += 1;
          return Reflect.get(spans, key);
        },
      });
      rows.push(row);
    },
    () => undefined,
  );
  screen.write("stdout", colors);
  assert.ok(reads < 20 * LONGEST_ROW, `${reads} reads`);
  assert.equal(rows[0]?.spans.length, MOST_SPANS);
  assert.equal(plain(rows[0] as Row), "x".repeat(150_000));
});

test("a row redrawn in ever other colors stays bounded too", () => {
  const row = one("a".repeat(5_000), "\r", ...Array.from({ length: 5_000 }, (_, i) => `\x1b[3${1 + (i % 7)}mb`));
  assert.ok(row.spans.length <= MOST_SPANS + 2, `${row.spans.length} spans`);
  assert.equal(plain(row), "b".repeat(5_000));
  assert.equal(row.length, 5_000);
});

test("styles written over others are those one sees", () => {
  const row = one("\x1b[31mabcdef\r\x1b[32mXY\x1b[33mZW\r\x1b[2C\x1b[32mQ");
  assert.deepEqual(
    row.spans.map((span) => [span.text, span.style.fg]),
    [
      ["XYQ", 2],
      ["W", 3],
      ["ef", 1],
    ],
  );
});
