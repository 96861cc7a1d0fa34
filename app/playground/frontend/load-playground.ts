/** Loads the script of the playground on its page. Files that are dropped before it is there are not lost. */

import { lateScript } from "../../web/frontend/late-script";

export function setUpPlaygroundLoader(): void {
  const field = document.querySelector<HTMLInputElement>("[data-open]");
  if (!field) return;
  acceptDrops(field);
  lateScript(() => import("./playground").then((module) => module.setUpPlayground()), { forms: ".share-form" })();
}

/** Makes files that are dropped anywhere on the page, but in a text field or an editor, those that the field has chosen. */
function acceptDrops(field: HTMLInputElement): void {
  const theirs = ({ dataTransfer, target }: DragEvent): boolean =>
    Boolean(dataTransfer?.types.includes("Files")) && !(target as Element).closest("input, textarea, .cm-editor");
  document.addEventListener("dragover", (event) => {
    if (theirs(event)) event.preventDefault(); // otherwise the browser leaves the page to show the file
  });
  document.addEventListener("drop", (event) => {
    if (!theirs(event)) return;
    event.preventDefault();
    field.files = event.dataTransfer?.files ?? null;
    field.dispatchEvent(new Event("change"));
  });
}
