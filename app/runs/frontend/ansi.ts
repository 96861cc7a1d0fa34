/**
 * Select Graphic Rendition: the ANSI escape codes that style text.
 *
 * Styles are immutable, and equal styles are the same object, so rows of text can compare them by identity.
 */

/** A palette index 0–15, or "#rrggbb". */
export type Color = number | string;

export interface Style {
  readonly fg: Color | null;
  readonly bg: Color | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly strike: boolean;
  readonly inverse: boolean;
}

const known = new Map<string, Style>();

function intern(style: Style): Style {
  const key = Object.values(style).join("|");
  const same = known.get(key);
  if (same) return same;
  known.set(key, style);
  return style;
}

export const PLAIN: Style = intern({
  fg: null,
  bg: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
});

const SWITCHES: Record<number, Partial<Style>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { fg: null },
  49: { bg: null },
};

/** The style after `ESC [ params m`. Unknown codes are ignored. */
export function restyle(style: Style, params: string): Style {
  const codes = params.split(/[;:]/).map((part) => (part === "" ? 0 : Number(part)));
  let next: Style = style;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] as number;
    if (code === 0) next = PLAIN;
    else if (code in SWITCHES) next = { ...next, ...SWITCHES[code] };
    else if (code >= 30 && code <= 37) next = { ...next, fg: code - 30 };
    else if (code >= 40 && code <= 47) next = { ...next, bg: code - 40 };
    else if (code >= 90 && code <= 97) next = { ...next, fg: code - 82 };
    else if (code >= 100 && code <= 107) next = { ...next, bg: code - 92 };
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes, i + 1);
      if (color !== null) next = code === 38 ? { ...next, fg: color } : { ...next, bg: color };
      i += used;
    }
  }
  return intern(next);
}

/** Parses `5;n` or `2;r;g;b` at `at`. Returns the color and the number of codes used. */
function extended(codes: number[], at: number): [Color | null, number] {
  if (codes[at] === 5) return [indexed(codes[at + 1] ?? -1), 2];
  if (codes[at] === 2) {
    const rgb = codes.slice(at + 1, at + 4);
    const whole = rgb.length === 3 && rgb.every((c) => Number.isInteger(c) && c >= 0 && c <= 255);
    return [whole ? hex(rgb) : null, 4];
  }
  return [null, codes.length];
}

/** One of the 256 colors: the palette, the 6×6×6 cube, or the 24 grays. */
function indexed(n: number): Color | null {
  if (!Number.isInteger(n) || n < 0 || n > 255) return null;
  if (n < 16) return n;
  if (n >= 232) return hex([8 + 10 * (n - 232), 8 + 10 * (n - 232), 8 + 10 * (n - 232)]);
  const level = (v: number): number => (v === 0 ? 0 : 55 + 40 * v);
  const c = n - 16;
  return hex([level(Math.floor(c / 36)), level(Math.floor(c / 6) % 6), level(c % 6)]);
}

function hex(rgb: number[]): string {
  return `#${rgb.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
}
