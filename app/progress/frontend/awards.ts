/** Shows awards as a few small cards that are announced, close by key or by themselves, and cover nothing important. */

import { make } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";
import css from "./awards.css";
import badge from "./badge.css";

const STAYS_MS = 9_000;
const MOST = 2;
/** A smaller window, such as a phone's, has room for one, at the top, where the page says what it is about. */
const ROOMY = "(min-width: 46.01rem) and (min-height: 500px)";

const sheet = new CSSStyleSheet();
sheet.replaceSync(badge + css);
document.adoptedStyleSheets.push(sheet);

const waiting: HTMLElement[] = [];
const shown = new Set<string>();
let place: HTMLElement | null = null;

/** Shows each card once; cards that do not fit wait until another one closes. */
export function show(cards: HTMLElement[]): void {
  for (const card of cards) {
    const key = card.dataset.key ?? "";
    if (!shown.has(key)) waiting.push(card);
    shown.add(key);
  }
  if (!place) {
    place = make("section.awards", {
      "aria-label": say("learning.awards"),
      "aria-live": "polite",
      "aria-relevant": "additions",
    });
    document.body.append(place);
    document.addEventListener("keydown", closeNewest);
  }
  window.setTimeout(fill, 100); // screen readers ignore content that a new live region already has
}

function fill(): void {
  const most = window.matchMedia(ROOMY).matches ? MOST : 1;
  while (place && waiting.length && place.childElementCount < most) hang(place, waiting.shift() as HTMLElement);
}

/** On a phone, the cards are below the top bar, or near the bottom if there they would cover the Run of a cell. */
function keepClear(place: HTMLElement): void {
  place.classList.remove("at-bottom");
  const { top, bottom } = place.getBoundingClientRect();
  const actions = [...document.querySelectorAll(".cell-actions")].map((each) => each.getBoundingClientRect());
  place.classList.toggle(
    "at-bottom",
    actions.some((each) => each.bottom > top && each.top < bottom),
  );
}

function hang(place: HTMLElement, card: HTMLElement): void {
  let timer = 0;
  const wait = (): void => {
    timer ||= window.setTimeout(() => close(card), STAYS_MS);
  };
  const stay = (): void => {
    window.clearTimeout(timer);
    timer = 0;
  };
  const settle = (): void => (document.hidden || card.matches(":hover, :focus-within") ? stay() : wait());
  card.querySelector("button")?.addEventListener("click", () => close(card));
  for (const event of ["pointerenter", "focusin"]) card.addEventListener(event, stay);
  for (const event of ["pointerleave", "focusout"]) card.addEventListener(event, () => window.setTimeout(settle));
  document.addEventListener("visibilitychange", settle);
  place.append(card);
  keepClear(place);
  settle();
}

function close(card: HTMLElement): void {
  if (!card.isConnected) return;
  const held = card.contains(document.activeElement);
  const next = (card.nextElementSibling ?? card.previousElementSibling)?.querySelector<HTMLElement>("button");
  card.remove();
  if (held) (next ?? document.getElementById("main"))?.focus();
  fill();
}

/** Escape closes the newest card, unless something else handles the key. */
function closeNewest(event: KeyboardEvent): void {
  const inUse = (event.target as Element).closest(".cm-editor, dialog, input, select, textarea");
  const busy = event.defaultPrevented || inUse || document.querySelector(":popover-open");
  const card = place?.lastElementChild as HTMLElement | null | undefined;
  if (event.key === "Escape" && !busy && card) close(card);
}
