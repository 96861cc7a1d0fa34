/** Renders rows and styles as elements. Palette colors are classes; other colors adapt to the theme. */

import { make } from "../../web/frontend/element";
import { sayCount } from "../../web/frontend/strings";
import { type Color, PLAIN, type Style } from "./ansi";
import { readableColor, themedColor } from "./contrast";
import { type Row, type Span, TerminalRows } from "./terminal-rows";

export function renderRow(row: Row, into?: HTMLElement): HTMLElement {
  const element = into ?? make("div.row");
  element.classList.toggle("err", row.stream === "stderr");
  const nodes: Node[] = row.spans.map(paintSpan);
  if (row.rest) nodes.push(make("span.folded", {}, ` … ${sayCount("output.characters", row.rest.length)}`));
  element.replaceChildren(...nodes);
  return element;
}

/** Renders text with escape codes as rows (for a traceback's frames). */
export function renderText(text: string): HTMLElement[] {
  const rows: Row[] = [];
  new TerminalRows(
    (row) => rows.push(row),
    () => undefined,
  ).write("stdout", text.replace(/\n$/, ""));
  return rows.map((row) => renderRow(row));
}

function paintSpan({ text, style }: Span): Node {
  if (style === PLAIN) return document.createTextNode(text);
  const element = make("span", {}, text);
  for (const name of ["bold", "dim", "italic", "underline", "strike"] as const) {
    if (style[name]) element.classList.add(name);
  }
  color(element, style);
  return element;
}

function color(element: HTMLElement, style: Style): void {
  const [fg, bg] = style.inverse ? [style.bg ?? "paper", style.fg ?? "ink"] : [style.fg, style.bg];
  if (typeof bg === "string" && bg.startsWith("#")) {
    element.style.backgroundColor = bg;
    element.style.color = readableColor(typeof fg === "string" && fg.startsWith("#") ? fg : contrastInk(bg), bg);
    return;
  }
  if (bg !== null) element.classList.add(`bg-${bg}`);
  if (fg === null) return;
  if (typeof fg === "string" && fg.startsWith("#")) {
    if (bg === null) element.style.color = themedColor(fg);
  } else if (bg === null || fg === "paper") element.classList.add(`fg-${fg satisfies Color}`);
}

function contrastInk(background: string): string {
  return readableColor("#808080", background);
}
