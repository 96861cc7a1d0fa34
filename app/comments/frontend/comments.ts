/**
 * The forms of comments: keeps the text in this browser until the server has it, clears a form after it was sent, and
 * moves the focus to what has changed. Everything also works without this script.
 */

import { availableStorage } from "../../accounts/frontend/account-storage";
import { announce } from "../../web/frontend/announce";
import { newKey } from "../../web/frontend/double-submit";
import { say } from "../../web/frontend/strings";
import { setUpMentions } from "./mentions";

interface Exchange {
  ctx: { sourceElement: Element; request: { method?: string }; response?: { status: number } };
}

const SHOWN_BESIDE = new Set([401, 422, 429]);
const known = new WeakSet<HTMLFormElement>();
let listening = false;
let opener: HTMLElement | null = null;

/** Can be called again to set up new forms. */
export function setUpComments(): void {
  for (const form of document.querySelectorAll<HTMLFormElement>("form.comment-form")) {
    if (known.has(form)) continue;
    known.add(form);
    setUpForm(form);
  }
  if (listening) return;
  listening = true;
  document.addEventListener("click", clicked);
  document.addEventListener("htmx:after:request", (event) => answered((event as CustomEvent<Exchange>).detail.ctx));
  document.addEventListener("htmx:after:swap", (event) => swapped((event as CustomEvent<Exchange>).detail.ctx));
  document.addEventListener("htmx:error", (event) => {
    const form = formOf((event as CustomEvent<Exchange>).detail.ctx?.sourceElement);
    if (form) complain(form, say("comment.unsent"));
  });
}

function setUpForm(form: HTMLFormElement): void {
  const field = form.querySelector("textarea");
  if (field) {
    if (field.value !== field.defaultValue) keep(form, field);
    else restore(form, field);
    field.addEventListener("input", () => keep(form, field));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form.querySelector("button"))
        form.requestSubmit();
    });
    if (form.dataset.draft && form.querySelector("button")) setUpMentions(form, field);
  }
  const signIn = form.querySelector<HTMLAnchorElement>("[data-sign-in]");
  if (signIn && document.body.classList.contains("lesson")) {
    const address = new URL(signIn.href);
    const cell = form.closest("#discuss") && form.querySelector<HTMLInputElement>("input[name=cell]")?.value;
    address.searchParams.set("next", `${location.pathname}#${cell ? `cell-${cell}` : "comments"}`);
    signIn.href = address.pathname + address.search;
  }
  if (form.dataset.inline !== undefined || field?.getAttribute("aria-invalid"))
    (field ?? form.querySelector("button"))?.focus();
}

function clicked(event: MouseEvent): void {
  const pressed = event.target as Element;
  // After a fast answer, the second click of a double click would send the form that was just emptied.
  if (event.detail > 1 && pressed.closest(".comment-form button")) event.preventDefault();
  const formLink = pressed.closest<HTMLElement>(".comment-action[hx-get]");
  if (formLink) opener = formLink;
  const slot = pressed.closest("[data-cancel]")?.closest(".slot");
  if (!slot) return;
  event.preventDefault();
  const form = slot.querySelector<HTMLFormElement>("form");
  if (form) forget(form);
  slot.replaceChildren();
  if (opener?.isConnected) opener.focus();
}

function answered({ sourceElement, response }: Exchange["ctx"]): void {
  const form = formOf(sourceElement);
  const status = response?.status ?? 0;
  if (!form || !status) return;
  if (status >= 400) {
    if (!SHOWN_BESIDE.has(status)) complain(form, say("error.status", { status }));
    return;
  }
  forget(form);
  form.reset();
  const field = form.querySelector("textarea");
  if (field && !form.dataset.inline) field.value = "";
  const key = form.querySelector<HTMLInputElement>("input[name=key]");
  if (key) key.value = newKey();
  complain(form, "");
}

/** Moves the focus to what was requested, written or changed, and announces that it worked. */
function swapped({ sourceElement }: Exchange["ctx"]): void {
  const form = formOf(sourceElement);
  if (!form || document.querySelector(".comment-form [aria-invalid]")) return;
  const there =
    document.querySelector<HTMLElement>(".comment.asked-for") ??
    document.querySelector<HTMLElement>("#threads .comment");
  if (document.activeElement === document.body || !form.isConnected) there?.focus({ preventScroll: false });
  announce(say("comment.done"));
}

function formOf(element: Element | undefined): HTMLFormElement | null {
  return element instanceof HTMLFormElement && element.classList.contains("comment-form") ? element : null;
}

function complain(form: HTMLFormElement, text: string): void {
  const place = form.querySelector(".comment-error");
  if (place) place.textContent = text;
}

// --- drafts ---

/** Drafts are separate for each account, because somebody else may use this browser next. */
function nameOf(form: HTMLFormElement, whose = form.dataset.whose ?? ""): string | null {
  return form.dataset.draft ? `lockstep:comment:${whose}:${form.dataset.draft}` : null;
}

/** The draft with this name; a draft from before signing in moves to the account. */
function adopted(name: string, before: string): string | null {
  const storage = availableStorage();
  const [own, earlier] = [storage?.getItem(name) ?? null, storage?.getItem(before) ?? null];
  if (own !== null || earlier === null) return own;
  try {
    storage?.setItem(name, earlier);
    storage?.removeItem(before);
  } catch {
    // Storage is full: the draft stays where it is.
  }
  return earlier;
}

function restore(form: HTMLFormElement, field: HTMLTextAreaElement): void {
  const name = nameOf(form);
  const kept = name ? adopted(name, nameOf(form, "") ?? name) : null;
  if (kept && !field.getAttribute("aria-invalid")) field.value = kept;
}

function keep(form: HTMLFormElement, field: HTMLTextAreaElement): void {
  const name = nameOf(form);
  if (!name) return;
  try {
    if (field.value && field.value !== field.defaultValue) availableStorage()?.setItem(name, field.value);
    else availableStorage()?.removeItem(name);
  } catch {
    // Storage is full or denied: the text stays in the field while the page is open.
  }
}

function forget(form: HTMLFormElement): void {
  const name = nameOf(form);
  if (name) availableStorage()?.removeItem(name);
}
