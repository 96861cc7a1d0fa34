/** A picture's numbers as a table with a caption and headers, in a frame that scrolls. */

import { make } from "./element";

/** The first cell of each row is its header. */
export function numbersTable(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): HTMLElement {
  const head = make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((text, i) => (i === 0 ? make("th", { scope: "row" }, text) : make("td", {}, text)))),
  );
  const table = make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body));
  return make("div.numbers-frame", { role: "group", tabindex: 0, "aria-label": caption }, table);
}

/** A disclosure whose content is created when it is first opened. */
export function disclosed(title: string, content: () => HTMLElement): HTMLElement {
  const box = make<HTMLDetailsElement>("details.numbers", {}, make("summary", {}, title));
  box.addEventListener("toggle", () => box.append(content()), { once: true });
  return box;
}
