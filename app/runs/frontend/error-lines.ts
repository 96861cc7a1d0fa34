/** Finds the lines of cells that a traceback shows. Pure. */

const ESCAPES = /\x1b\[[0-9;]*m/g;
const HEAD = /^\s*Cell In\s?\[\d+\], line (\d+)(.*)/;
const ARROW = /^-+> ?\d+ ?(.*)$/m;

/** A frame in the code of some run: its line, the text of that line, and what follows the line in the frame's head. */
export interface CodeFrame {
  line: number;
  text: string;
  rest: string;
}

/** What a frame says about the code of a run; null if it is in a file. */
export function codeFrame(frame: string): CodeFrame | null {
  const plain = frame.replace(ESCAPES, "");
  const head = HEAD.exec(plain);
  if (!head) return null;
  const text = ARROW.exec(plain)?.[1] ?? plain.split("\n")[1] ?? "";
  return { line: Number(head[1]), text: text.trim(), rest: head[2] ?? "" };
}

/** The number of the frame's line in `code`; null if it is not from there. IPython does not count empty first lines. */
export function lineInCode({ line, text }: CodeFrame, code: string): number | null {
  const lines = code.split("\n");
  const first = lines.findIndex((each) => each.trim());
  const found = line + Math.max(0, first);
  return text && lines[found - 1]?.trim() === text ? found : null;
}

/** Where a line is after edits: the nearest with the same text, otherwise the same number or the last line. */
export function lineAfterEdits(line: number, before: string, after: string): number {
  const text = before.split("\n")[line - 1]?.trim();
  const lines = after.split("\n");
  const same = lines.flatMap((each, i) => (each.trim() === text ? [i + 1] : []));
  return same.sort((a, b) => Math.abs(a - line) - Math.abs(b - line))[0] ?? Math.min(line, lines.length);
}
