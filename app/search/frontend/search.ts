/**
 * Searches without leaving the page: the search opens in a dialog, also with the key "/". Without this script, the same
 * link leads to a page. On a page that was found, what was searched for is marked.
 */

const RESULTS = "#search-query, #search-results a";

export function setUpSearch(): void {
  const dialog = document.querySelector<HTMLDialogElement>("dialog#search");
  const link = document.querySelector<HTMLAnchorElement>(".search-link");
  if (new URLSearchParams(location.search).has("mark")) void import("./mark").then(({ markWords }) => markWords());
  if (!dialog || !link) return;
  document.addEventListener("htmx:after:swap", ({ detail }) => {
    if (dialog.querySelector("form") && !dialog.open) dialog.showModal();
    const field = dialog.querySelector<HTMLInputElement>("#search-query");
    // Later results have replaced the one that had the focus.
    if (detail.ctx.sourceElement === field && document.activeElement === document.body) field.focus();
  });
  dialog.addEventListener("close", () => dialog.querySelector("#search-place")?.replaceChildren());
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog || (target as Element).closest("a")) dialog.close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "/" && !isTyping(event.target as HTMLElement) && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      link.click();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const stops = [...document.querySelectorAll<HTMLElement>(RESULTS)];
      const here = stops.indexOf(event.target as HTMLElement);
      const next = here < 0 ? undefined : stops[here + (event.key === "ArrowDown" ? 1 : -1)];
      if (!next) return;
      event.preventDefault();
      next.focus();
    }
  });
}

function isTyping(target: HTMLElement): boolean {
  return target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
