/**
 * Sends the page's edits with the request for a download: those that were not run may be in this browser only.
 *
 * A form does that as a link would: the browser saves the file, and shows the server's page if there is an error.
 */

import { currentAccount } from "../../accounts/frontend/account-storage";
import { make } from "../../web/frontend/element";

/** A cell, as this module needs it. */
export interface EditedCell {
  readonly name: string;
  readonly original: string;
  readonly currentCode: string;
}

/** The code of the cells that differ from the lesson, by their names. Pure. */
export function editsOf(cells: readonly EditedCell[]): Record<string, string> {
  const edited = cells.filter((cell) => cell.currentCode !== cell.original);
  return Object.fromEntries(edited.map((cell) => [cell.name, cell.currentCode]));
}

export function setUpDownloads(cells: readonly EditedCell[]): void {
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a[data-with-work]");
    const edits = editsOf(cells);
    if (!link || !Object.keys(edits).length) return;
    event.preventDefault();
    if (currentAccount() === null) return; // the page still shows edits of an account that has left
    const field = make("input", { type: "hidden", name: "edits", value: JSON.stringify(edits) });
    const form = make<HTMLFormElement>("form", { method: "post", action: link.pathname, hidden: "" }, field);
    document.body.append(form);
    form.submit();
    form.remove();
  });
}
