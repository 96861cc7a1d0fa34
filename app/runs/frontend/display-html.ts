/**
 * HTML that is simple enough to become part of the page: tables of pandas, and audio. It is parsed into a document that
 * runs and loads nothing, and rebuilt from its text; whatever is not known stays in a frame.
 */

import { make } from "../../web/frontend/element";

const MOST_CELLS = 5_000;
const MOST_SPANNED = 1_000;
/** They would be dropped anyway, and each would be a violation of the page's policy. */
const STYLES = /<style[^<>]*>[^<]*<\/style>| style="[^"]*"/gi;
const TABLE_PARTS = new Set([
  "DIV",
  "STYLE",
  "TABLE",
  "THEAD",
  "TBODY",
  "TFOOT",
  "TR",
  "TH",
  "TD",
  "P",
  "BR",
  "CAPTION",
]);
const AUDIO_URL = /^data:audio\/[\w.+-]{1,40};base64,[A-Za-z0-9+/=\s]+$/;

/** The element for HTML of a kind that is known, or null. */
export function knownHtml(html: string, label: string): HTMLElement | null {
  const table = html.includes('class="dataframe');
  const audio = html.includes("<audio");
  if (!table && !audio) return null;
  const { body } = new DOMParser().parseFromString(withoutStyles(html), "text/html");
  return table ? dataFrame(body, label) : audioPlayer(body, label);
}

/** Pure. */
export function withoutStyles(html: string): string {
  return html.replace(STYLES, "");
}

function dataFrame(body: HTMLElement, label: string): HTMLElement | null {
  const [table, ...others] = body.querySelectorAll<HTMLTableElement>("table.dataframe");
  const cells = table?.querySelectorAll("th, td").length ?? 0;
  if (!table || others.length || cells > MOST_CELLS) return null;
  if (![...body.querySelectorAll("*")].every(({ tagName, id }) => TABLE_PARTS.has(tagName) && !id)) return null;
  const parts = [...table.children].map((part) =>
    part.tagName === "CAPTION"
      ? make("caption", {}, part.textContent)
      : make(part.tagName === "THEAD" ? "thead" : "tbody", {}, ...[...part.querySelectorAll("tr")].map(copyRow)),
  );
  const size = [...body.querySelectorAll("p")].map((p) => make("p", {}, p.textContent));
  const frame = make("div.scroll", { role: "group", tabindex: 0, "aria-label": label }, make("table", {}, ...parts));
  return make("div.display.data-frame", {}, frame, ...size);
}

function copyRow(row: HTMLTableRowElement): HTMLElement {
  const head = row.parentElement?.tagName === "THEAD";
  return make("tr", {}, ...[...row.cells].map((cell) => copyCell(cell, head)));
}

function copyCell(cell: HTMLTableCellElement, head: boolean): HTMLElement {
  const [colspan, rowspan] = [cell.colSpan, cell.rowSpan].map((n) => (n > 1 ? Math.min(n, MOST_SPANNED) : null));
  if (cell.tagName === "TD" || !cell.textContent) return make("td", { colspan, rowspan }, cell.textContent);
  return make("th", { colspan, rowspan, scope: head ? "col" : "row" }, cell.textContent);
}

function audioPlayer(body: HTMLElement, label: string): HTMLElement | null {
  const audio = body.querySelector("audio");
  const src = audio?.querySelector("source")?.getAttribute("src") ?? audio?.getAttribute("src") ?? "";
  if (body.children.length !== 1 || !AUDIO_URL.test(src)) return null;
  return make(
    "div.display.audio",
    {},
    make("audio", { controls: true, src, "aria-label": label, preload: "metadata" }),
  );
}
