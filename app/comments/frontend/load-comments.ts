/** Loads comments, and their script, when they are near the viewport or asked for. */

import { lateScript } from "../../web/frontend/late-script";

export function setUpCommentsLoader(): void {
  const load = lateScript(() => import("./comments").then(({ setUpComments }) => setUpComments()), {
    forms: "form.comment-form",
  });
  const look = (): void => {
    if (document.querySelector(".comments")) load();
  };
  document.addEventListener("htmx:after:swap", look);
  look();
  document.addEventListener("click", discuss, { capture: true });
}

let panel: typeof import("./discuss") | null = null;
/** The link that was pressed last before the script of the panel was there. */
let pressed: HTMLAnchorElement | null = null;

/** Opens the panel before htmx requests its comments, which would otherwise come into a panel that is not open. */
function discuss(event: MouseEvent): void {
  const link = (event.target as Element).closest<HTMLAnchorElement>("a[data-discuss]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (panel) {
    panel.openDiscussion(link);
    return;
  }
  event.preventDefault();
  event.stopImmediatePropagation();
  pressed = link;
  import("./discuss").then(
    (chunk) => {
      panel = chunk;
      pressed?.click();
      pressed = null;
    },
    () => location.assign(link.href),
  );
}
