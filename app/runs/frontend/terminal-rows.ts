/**
 * Text in rows, as a terminal would show it: carriage return, backspace, erasing and cursor movement overwrite in
 * place.
 *
 * Standard output and standard error each have a cursor and rows of their own, so that a warning in the middle of a
 * progress bar gets its own row and the bar continues where it was.
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
  /** The visible part: at most `LONGEST_ROW` characters in at most `MOST_SPANS` spans. */
  spans: Span[];
  /** The number of characters in `spans`. */
  length: number;
  /** The worker or replica that wrote it; null for the cell itself. */
  lane: string | null;
  /** The text after `LONGEST_ROW`: never overwritten, only appended to. */
  rest: string;
}

interface Cursor {
  /** Index into `own[stream]`; equal to its length if the row does not exist yet. */
  row: number;
  column: number;
  style: Style;
  /** The start of an incomplete escape sequence. */
  pending: string;
}

// A control sequence, an operating-system command, another escape, or one control character.
const CONTROL =
  /\x1b\[([\x30-\x3f]*)[\x20-\x2f]*([\x40-\x7e])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\x20-\x2f]*[\x30-\x5a\x5c-\x7e]|[\x00-\x1f\x7f]/g;
const UNFINISHED = /\x1b(?:\[[\x20-\x3f]{0,64}|\][^\x07\x1b]{0,2048}\x1b?|[\x20-\x2f]{0,8})?$/;
const TAB = 8;
/** The cursor cannot move further, as terminals are narrower. Text can be longer. */
const LAST_COLUMN = 1_000;
export const LONGEST_ROW = 8_000;
const BLANK = " ".repeat(LONGEST_ROW);
/** After this many changes of style, text keeps the last style. */
export const MOST_SPANS = 1_000;

/** A stretch of text without other items. `added` is called for each new row, `changed` for each row written to. */
export class TerminalRows {
  private readonly own: Record<Stream, Row[]> = { stdout: [], stderr: [] };
  private readonly cursors: Record<Stream, Cursor> = { stdout: cursor(), stderr: cursor() };

  constructor(
    private readonly added: (row: Row) => void,
    private readonly changed: (row: Row) => void,
    private readonly lane: string | null = null,
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
      this.row(stream); // an empty line is a row, too
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
    else if (final === "C") at.column = Math.max(at.column, Math.min(LAST_COLUMN, at.column + (n || 1)));
    else if (final === "D") at.column = Math.max(0, at.column - (n || 1));
    else if (final === "G") at.column = Math.min(LAST_COLUMN, (n || 1) - 1);
    else if (final === "K") this.erase(stream, n);
    if (final === "E" || final === "F") at.column = 0;
  }

  /** Erases to the end of the row (0), to its start (1), or all of it (2). */
  private erase(stream: Stream, how: number): void {
    const at = this.cursors[stream];
    const row = this.own[stream][at.row];
    if (!row) return;
    const column = Math.min(at.column, row.length);
    if (how === 2) set(row, []);
    else if (how === 0 && at.column < LONGEST_ROW) set(row, cut(row.spans, 0, column));
    else if (how === 1)
      row.spans = [{ text: BLANK.slice(0, column), style: PLAIN }, ...cut(row.spans, column, Infinity)];
    this.changed(row);
  }

  private put(stream: Stream, text: string): void {
    const at = this.cursors[stream];
    const row = this.row(stream);
    const room = Math.max(0, LONGEST_ROW - at.column);
    if (room > 0) {
      if (at.column > row.length) append(row, BLANK.slice(0, at.column - row.length), PLAIN);
      overwrite(row, at.column, text.slice(0, room), at.style);
    }
    if (text.length > room) row.rest = room > 0 ? text.slice(room) : row.rest + text;
    at.column += text.length;
    this.changed(row);
  }

  private row(stream: Stream): Row {
    const at = this.cursors[stream];
    const rows = this.own[stream];
    while (rows.length <= at.row) {
      const row: Row = { kind: "row", stream, spans: [], length: 0, rest: "", lane: this.lane };
      rows.push(row);
      this.added(row);
    }
    return rows[at.row] as Row;
  }
}

export function plain(row: Row): string {
  return row.spans.map((span) => span.text).join("") + row.rest;
}

function cursor(): Cursor {
  return { row: 0, column: 0, style: PLAIN, pending: "" };
}

/** Replaces the row's spans. */
function set(row: Row, spans: Span[]): void {
  row.spans = spans;
  row.length = spans.reduce((sum, span) => sum + span.text.length, 0);
  row.rest = "";
}

/** Appends to the row, in constant time. */
function append(row: Row, text: string, style: Style): void {
  join(row.spans, text, row.spans.length < MOST_SPANS ? style : (row.spans.at(-1) as Span).style);
  row.length += text.length;
}

/** Overwrites the text at `column`, which must not be beyond the end of the row. */
function overwrite(row: Row, column: number, text: string, style: Style): void {
  if (column === row.length) {
    append(row, text, style);
    return;
  }
  const { spans } = row;
  const end = column + text.length;
  const [first, firstStart] = spanAt(spans, 0, 0, column);
  const [last, lastStart] = spanAt(spans, first, firstStart, Math.min(end, row.length) - 1);
  const { text: before, style: old } = spans[first] as Span;
  const { text: after, style: next } = spans[last] as Span;
  const fresh: Span[] = [];
  join(fresh, before.slice(0, column - firstStart), old);
  join(fresh, text, spans.length < MOST_SPANS ? style : old);
  join(fresh, after.slice(end - lastStart), next);
  const neighbor = spans[first - 1];
  if (neighbor && neighbor.style === fresh[0]?.style) neighbor.text += (fresh.shift() as Span).text;
  spans.splice(first, last - first + 1, ...fresh);
  row.length = Math.max(row.length, end);
}

/** The index and first column of the span that contains `column`, searching from the span at `index`. */
function spanAt(spans: Span[], index: number, start: number, column: number): [number, number] {
  for (; index < spans.length - 1; index++) {
    const next = start + (spans[index] as Span).text.length;
    if (column < next) break;
    start = next;
  }
  return [index, start];
}

function join(spans: Span[], text: string, style: Style): void {
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

/** The column one character back: a surrogate pair counts as one, and the start of the row is the limit. */
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
