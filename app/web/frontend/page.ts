/** What every page has: the theme switch, the outline, and the mark at the current heading. */

const THEME = "lockstep:theme";

export function setUpTheme(): void {
  const select = document.querySelector<HTMLSelectElement>("select[data-theme-switch]");
  if (!select) return;
  const root = document.documentElement;
  select.value = root.dataset.theme ?? "system";
  select.addEventListener("change", () => {
    if (select.value === "system") delete root.dataset.theme;
    else root.dataset.theme = select.value;
    try {
      if (select.value === "system") window.localStorage.removeItem(THEME);
      else window.localStorage.setItem(THEME, select.value);
    } catch {
      // Storage is denied: the choice lasts as long as the page.
    }
  });
}

/** Links to other languages lead to the same place: the current URL, and the cell that is being read. */
export function setUpLanguages(): void {
  const follow = (event: Event): void => {
    const link = (event.target as Element).closest?.<HTMLAnchorElement>(":is(.languages, .foot-languages) a");
    if (!link) return;
    link.search = location.search;
    link.hash = document.getElementById("main")?.querySelector(".cell") ? placeInLesson() : location.hash;
  };
  for (const kind of ["click", "auxclick", "contextmenu"]) document.addEventListener(kind, follow, true);
}

/** Headings have other IDs in other languages; cells do not. */
function placeInLesson(): string {
  const line = window.innerHeight * 0.3;
  const anchors = [...document.querySelectorAll<HTMLElement>(".cell[id], #lesson-end, #comments")];
  const last = anchors.findLast((anchor) => anchor.getBoundingClientRect().top <= line);
  return last ? `#${last.id}` : "";
}

/** `popovertarget` opens the outline without a script; this only closes the sheet after a jump. */
export function setUpOutline(): void {
  const sheet = document.getElementById("outline");
  sheet?.addEventListener("click", (event) => {
    if ((event.target as Element).closest("a[href^='#']") && sheet.matches(":popover-open")) sheet.hidePopover();
  });
  const here = sheet?.querySelector<HTMLElement>("[aria-current=page]");
  if (!sheet || !here) return;
  const reveal = (): void => {
    sheet.scrollTop = Math.max(0, here.offsetTop - sheet.clientHeight / 2);
  };
  sheet.addEventListener("toggle", reveal);
  requestAnimationFrame(reveal); // with the other scripts done, so that the page is laid out only once
}

/** Marks the current heading in the list "On this page". */
export function setUpRail(): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("[data-rail] a[href^='#']")];
  const targets = links
    .map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))))
    .filter((target): target is HTMLElement => target !== null);
  if (!targets.length) return;
  let waiting = 0;
  const mark = (): void => {
    waiting = 0;
    const line = window.innerHeight * 0.3;
    const current = targets.findLast((target) => target.getBoundingClientRect().top <= line) ?? targets[0];
    for (const link of links) {
      if (decodeURIComponent(link.hash.slice(1)) === current?.id) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
  };
  const markSoon = (): number => (waiting ||= requestAnimationFrame(mark));
  window.addEventListener("scroll", markSoon, { passive: true });
  markSoon();
}

/** If the system has no math font, loads ours when the page is idle. */
export function setUpFormulas(): void {
  if (!document.querySelector("math")) return;
  const fetchIt = (): void => document.documentElement.classList.add("formulas");
  if ("requestIdleCallback" in window) window.requestIdleCallback(fetchIt, { timeout: 4_000 });
  else setTimeout(fetchIt, 1_500);
}

/** Wide tables and formulas scroll in frames; only frames that scroll can be focused with the keyboard. */
export function setUpScrollers(): void {
  const frames = document.querySelectorAll<HTMLElement>(".table-scroll, .scroller, .listing, .math");
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth + 1) target.setAttribute("tabindex", "0");
      else target.removeAttribute("tabindex");
    }
  });
  for (const frame of frames) observer.observe(frame);
}
