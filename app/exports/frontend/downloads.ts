/**
 * Downloads that the server has to make: a bar shows that it is at work, and an error is shown beside the link.
 *
 * The page's edits are sent along: those that were not run may be in this browser only. Without this script, the links
 * lead to the files.
 */

import { currentAccount } from "../../accounts/frontend/account-storage";
import { ResponseError, responseError } from "../../runs/frontend/api";
import { announce } from "../../web/frontend/announce";
import { offer } from "../../web/frontend/download";
import { make } from "../../web/frontend/element";
import { language, say } from "../../web/frontend/strings";
import { fetchInTurn } from "../../web/frontend/visitor-requests";

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

/** The name in a header such as `attachment; filename="lesson.ipynb"`. Pure. */
export function fileName(disposition: string | null): string {
  return /filename="([^"]+)"/.exec(disposition ?? "")?.[1] ?? "download";
}

export function setUpDownloads(cells: readonly EditedCell[]): void {
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a[data-export]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const edits = "withWork" in link.dataset ? editsOf(cells) : {};
    const hasEdits = Object.keys(edits).length > 0;
    if (hasEdits && currentAccount() === null) return; // the page still shows edits of an account that has left
    if (link.getAttribute("aria-busy") !== "true") void download(link, hasEdits ? JSON.stringify(edits) : null);
  });
}

async function download(link: HTMLAnchorElement, edits: string | null): Promise<void> {
  const bar = make("progress", { class: "export-state", "aria-label": say("export.working") });
  link.parentElement?.querySelector(".export-state")?.remove();
  link.parentElement?.append(bar);
  link.setAttribute("aria-busy", "true");
  announce(say("export.working"));
  try {
    const response = await request(link, edits);
    if (!response.ok) throw await responseError(response);
    offer([await response.blob()], "", fileName(response.headers.get("content-disposition")));
    bar.remove();
  } catch (error) {
    const words = error instanceof ResponseError ? error.message : say("error.unreachable");
    bar.replaceWith(make("p", { class: "export-state fine" }, words));
    announce(words);
  } finally {
    link.removeAttribute("aria-busy");
  }
}

function request(link: HTMLAnchorElement, edits: string | null): Promise<Response> {
  const asked = { headers: { "X-Lockstep-Lang": language() }, credentials: "same-origin" } as const;
  if (edits === null) return fetchInTurn(link.href, asked);
  return fetchInTurn(link.pathname, { ...asked, method: "POST", body: new URLSearchParams({ edits }) });
}
