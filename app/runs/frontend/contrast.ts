/** Adjusts colors that a program chose, as little as possible, so that they are readable on our background. */

type Rgb = [number, number, number];

const ENOUGH = 4.5;
/** The output's background in the light and dark themes (`--sunken` in tokens.css; a test compares them). */
export const BACKGROUND = { light: "#f3f1ea", dark: "#0f1116" } as const;

export function parse(hex: string): Rgb {
  return [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16)) as Rgb;
}

/** The contrast ratio of two colors as defined by WCAG 2: 1 to 21. */
export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(parse(a)), luminance(parse(b))];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** `color`, darkened or lightened in small steps until it is readable on `paper`. */
export function readableColor(color: string, paper: string): string {
  const towards: Rgb = luminance(parse(paper)) > 0.18 ? [0, 0, 0] : [255, 255, 255];
  const from = parse(color);
  for (let step = 0; step <= 20; step++) {
    const mixed = `#${from
      .map((c, i) => Math.round(c + (((towards[i] as number) - c) * step) / 20))
      .map((c) => c.toString(16).padStart(2, "0"))
      .join("")}`;
    if (contrast(mixed, paper) >= ENOUGH) return mixed;
  }
  return towards[0] === 0 ? "#000000" : "#ffffff";
}

/** A CSS color that follows the theme and is readable in both. */
export function themedColor(color: string): string {
  return `light-dark(${readableColor(color, BACKGROUND.light)}, ${readableColor(color, BACKGROUND.dark)})`;
}

function luminance([r, g, b]: Rgb): number {
  const linear = (c: number): number => {
    const s = c / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}
