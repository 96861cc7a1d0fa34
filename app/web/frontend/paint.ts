/** Rows and styles as elements. Colours of the palette are classes; any other colour follows the theme by itself. */

import { type Colour, PLAIN, type Style } from "./ansi";
import { make } from "./element";
import { legible, themed } from "./legible";
import { type Row, Rows, type Span } from "./rows";
import { sayCount } from "./strings";

export function paintRow(row: Row, into?: HTMLElement): HTMLElement {
  const element = into ?? make("div.row");
  element.classList.toggle("err", row.stream === "stderr");
  const nodes: Node[] = row.spans.map(paintSpan);
  if (row.rest) nodes.push(make("span.folded", {}, ` … ${sayCount("output.characters", row.rest.length)}`));
  element.replaceChildren(...nodes);
  return element;
}

/** Text with escape codes, as rows of their own (a traceback's frame). */
export function paintText(text: string): HTMLElement[] {
  const rows: Row[] = [];
  new Rows(
    (row) => rows.push(row),
    () => undefined,
  ).write("stdout", text.replace(/\n$/, ""));
  return rows.map((row) => paintRow(row));
}

function paintSpan({ text, style }: Span): Node {
  if (style === PLAIN) return document.createTextNode(text);
  const element = make("span", {}, text);
  for (const name of ["bold", "dim", "italic", "underline", "strike"] as const) {
    if (style[name]) element.classList.add(name);
  }
  colour(element, style);
  return element;
}

function colour(element: HTMLElement, style: Style): void {
  const [fg, bg] = style.inverse ? [style.bg ?? "paper", style.fg ?? "ink"] : [style.fg, style.bg];
  if (typeof bg === "string" && bg.startsWith("#")) {
    element.style.backgroundColor = bg;
    element.style.color = legible(typeof fg === "string" && fg.startsWith("#") ? fg : contrastInk(bg), bg);
    return;
  }
  if (bg !== null) element.classList.add(`bg-${bg}`);
  if (fg === null) return;
  if (typeof fg === "string" && fg.startsWith("#")) {
    if (bg === null) element.style.color = themed(fg);
  } else if (bg === null || fg === "paper") element.classList.add(`fg-${fg satisfies Colour}`);
}

function contrastInk(background: string): string {
  return legible("#808080", background);
}
