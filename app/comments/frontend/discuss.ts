/**
 * The comments of a cell beside it, a chunk of its own: a panel in a wide window, a sheet in a narrow one. htmx requests
 * the comments; without a script, the same link leads to their page.
 *
 * The comments of the lesson wait outside the page while the panel is open, because both lists have the same IDs.
 */

import { make, need } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";
import css from "./discuss.css";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
document.adoptedStyleSheets.push(sheet);

/** As in lesson.css: from this width on, there is room beside the lesson. */
const WIDE = "(min-width: 74.01rem)";

interface Exchange {
  ctx?: { sourceElement?: Element; response?: { status: number } };
}

let opener: HTMLElement | null = null;
let listening = false;
/** The lesson's comments, and what marks their place. */
let aside: { comments: Element; mark: Comment } | null = null;

export function openDiscussion(link: HTMLAnchorElement): void {
  const dialog = document.querySelector<HTMLDialogElement>("dialog#discuss");
  const cell = link.closest<HTMLElement>(".cell");
  if (!dialog || !cell) return;
  if (!listening) listen(dialog);
  opener = link;
  need(dialog, "#discuss-title").textContent = link.getAttribute("aria-label");
  need(dialog, "#discuss-code code").textContent = codeOf(cell);
  need<HTMLAnchorElement>(dialog, "[data-whole]").href = link.href;
  need(dialog, "#discuss-place").replaceChildren(make("p.fine", {}, say("comment.loading")));
  putCommentsAside();
  if (!dialog.open) {
    const wide = window.matchMedia(WIDE).matches;
    keepInPlace(cell, () => document.body.classList.toggle("discussing", wide));
    if (wide) dialog.show();
    else dialog.showModal();
  }
  need(dialog, "#discuss-title").focus();
}

function listen(dialog: HTMLDialogElement): void {
  listening = true;
  const place = need(dialog, "#discuss-place");
  need(dialog, "[data-close-discuss]").addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) dialog.close();
  });
  dialog.addEventListener("close", () => {
    place.replaceChildren();
    bringCommentsBack();
    const cell = opener?.closest<HTMLElement>(".cell");
    const narrow = (): void => document.body.classList.remove("discussing");
    if (cell) keepInPlace(cell, narrow);
    else narrow();
    opener?.focus({ preventScroll: true });
  });
  window.matchMedia(WIDE).addEventListener("change", () => dialog.close());
  const failed = (event: Event): void => {
    const { ctx } = (event as CustomEvent<Exchange>).detail;
    const status = ctx?.response?.status ?? 0;
    const refused = event.type === "htmx:error" || status >= 400;
    if (refused && ctx?.sourceElement === opener)
      place.textContent = say(status ? "error.status" : "error.unreachable", { status });
  };
  document.addEventListener("htmx:error", failed);
  document.addEventListener("htmx:after:request", failed);
}

function putCommentsAside(): void {
  const comments = document.querySelector("#comments > div");
  if (!comments || aside) return;
  aside = { comments, mark: document.createComment("") };
  comments.replaceWith(aside.mark);
}

function bringCommentsBack(): void {
  aside?.mark.replaceWith(aside.comments);
  aside = null;
}

/** Changes the layout so that the cell stays where the reader sees it. */
function keepInPlace(cell: HTMLElement, change: () => void): void {
  const before = cell.getBoundingClientRect().top;
  change();
  window.scrollBy({ top: cell.getBoundingClientRect().top - before, behavior: "instant" });
}

function codeOf(cell: HTMLElement): string {
  const lines = [...cell.querySelectorAll(".cm-content .cm-line")].map((line) => line.textContent);
  return lines.length ? lines.join("\n") : (cell.querySelector("pre.code")?.textContent ?? "");
}
