/**
 * Text as a terminal would show it, in rows: carriage return, backspace, erase and cursor movement redraw in place.
 *
 * Standard output and standard error each have a cursor and rows of their own, so that a warning that arrives in the
 * middle of a progress bar gets its own row and the bar goes on where it was.
 */

import { PLAIN, restyle, type Style } from "./ansi";
import type { Stream } from "./protocol";

export interface Span {
  text: string;
  style: Style;
}

export interface Row {
  kind: "row";
  stream: Stream;
  spans: Span[];
}

interface Cursor {
  /** Index into `own[stream]`; equal to its length when the row is still to be made. */
  row: number;
  column: number;
  style: Style;
  /** The start of an escape sequence whose rest has not come yet. */
  pending: string;
}

// A control sequence, an operating-system command, another escape, or one control character.
const CONTROL = /\x1b\[([\x30-\x3f]*)[\x20-\x2f]*([\x40-\x7e])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\x20-\x2f]*[\x30-\x5a\x5c-\x7e]|[\x00-\x1f\x7f]/g;
const UNFINISHED = /\x1b(?:\[[\x20-\x3f]{0,64}|\][^\x07\x1b]{0,2048}\x1b?|[\x20-\x2f]{0,8})?$/;
const TAB = 8;

/** One uninterrupted stretch of text. `added` is called for each new row, `changed` for each row written to. */
export class Rows {
  private readonly own: Record<Stream, Row[]> = { stdout: [], stderr: [] };
  private readonly cursors: Record<Stream, Cursor> = { stdout: cursor(), stderr: cursor() };

  constructor(
    private readonly added: (row: Row) => void,
    private readonly changed: (row: Row) => void,
  ) {}

  write(stream: Stream, text: string): void {
    const at = this.cursors[stream];
    let input = at.pending + text;
    at.pending = UNFINISHED.exec(input)?.[0] ?? "";
    if (at.pending) input = input.slice(0, -at.pending.length);
    let done = 0;
    CONTROL.lastIndex = 0;
    for (let m = CONTROL.exec(input); m; m = CONTROL.exec(input)) {
      if (m.index > done) this.put(stream, input.slice(done, m.index));
      done = CONTROL.lastIndex;
      if (m[2] !== undefined) this.command(stream, m[2], m[1] ?? "");
      else if (m[0].length === 1) this.control(stream, m[0]);
    }
    if (done < input.length) this.put(stream, input.slice(done));
  }

  private control(stream: Stream, char: string): void {
    const at = this.cursors[stream];
    if (char === "\n") {
      this.row(stream); // an empty line is a row too
      at.row += 1;
      at.column = 0;
    } else if (char === "\r") at.column = 0;
    else if (char === "\b") at.column = stepBack(this.own[stream][at.row], at.column);
    else if (char === "\t") this.put(stream, " ".repeat(TAB - (at.column % TAB)));
  }

  private command(stream: Stream, final: string, params: string): void {
    const at = this.cursors[stream];
    const n = Math.min(Number.parseInt(params, 10) || 0, 10_000);
    if (final === "m") at.style = restyle(at.style, params);
    else if (final === "A" || final === "F") at.row = Math.max(0, at.row - (n || 1));
    else if (final === "B" || final === "E") at.row = Math.min(this.own[stream].length, at.row + (n || 1));
    else if (final === "C") at.column += n || 1;
    else if (final === "D") at.column = Math.max(0, at.column - (n || 1));
    else if (final === "G") at.column = Math.max(0, (n || 1) - 1);
    else if (final === "K") this.erase(stream, n);
    if (final === "E" || final === "F") at.column = 0;
  }

  /** Erases to the end of the row (0), to its start (1), or all of it (2). */
  private erase(stream: Stream, how: number): void {
    const at = this.cursors[stream];
    const row = this.own[stream][at.row];
    if (!row) return;
    if (how === 0) row.spans = cut(row.spans, 0, at.column);
    else if (how === 2) row.spans = [];
    else row.spans = [{ text: " ".repeat(at.column), style: PLAIN }, ...cut(row.spans, at.column, Infinity)];
    this.changed(row);
  }

  private put(stream: Stream, text: string): void {
    const at = this.cursors[stream];
    const row = this.row(stream);
    const length = lengthOf(row);
    if (at.column === length) append(row.spans, text, at.style);
    else {
      const head = cut(row.spans, 0, at.column);
      if (at.column > length) append(head, " ".repeat(at.column - length), PLAIN);
      append(head, text, at.style);
      for (const span of cut(row.spans, at.column + text.length, Infinity)) append(head, span.text, span.style);
      row.spans = head;
    }
    at.column += text.length;
    this.changed(row);
  }

  private row(stream: Stream): Row {
    const at = this.cursors[stream];
    const rows = this.own[stream];
    while (rows.length <= at.row) {
      const row: Row = { kind: "row", stream, spans: [] };
      rows.push(row);
      this.added(row);
    }
    return rows[at.row] as Row;
  }
}

export function plain(row: Row): string {
  return row.spans.map((span) => span.text).join("");
}

function cursor(): Cursor {
  return { row: 0, column: 0, style: PLAIN, pending: "" };
}

function lengthOf(row: Row): number {
  return row.spans.reduce((sum, span) => sum + span.text.length, 0);
}

function append(spans: Span[], text: string, style: Style): void {
  const last = spans.at(-1);
  if (last && last.style === style) last.text += text;
  else if (text) spans.push({ text, style });
}

/** Copies of the spans between two columns. */
function cut(spans: Span[], from: number, to: number): Span[] {
  const kept: Span[] = [];
  let start = 0;
  for (const { text, style } of spans) {
    const piece = text.slice(Math.max(0, from - start), Math.max(0, to - start));
    if (piece) kept.push({ text: piece, style });
    start += text.length;
  }
  return kept;
}

/** One character back: both halves of a surrogate pair at once, never past the row's start. */
function stepBack(row: Row | undefined, column: number): number {
  const before = row ? unitAt(row, column - 1) : 0;
  return Math.max(0, column - (before >= 0xdc00 && before <= 0xdfff ? 2 : 1));
}

function unitAt(row: Row, column: number): number {
  let start = 0;
  for (const { text } of row.spans) {
    if (column < start + text.length) return text.charCodeAt(column - start);
    start += text.length;
  }
  return 0;
}
