/**
 * Reports a problem without leaving the page: the form opens in a dialog. The text is kept in this browser until the
 * server has it. Without this script, the same links lead to a page with the form.
 */

import { availableStorage } from "../../accounts/frontend/account-storage";
import { announce } from "../../web/frontend/announce";
import { say } from "../../web/frontend/strings";

const DRAFT = "lockstep:problem";
const SHOWN_BESIDE = new Set([422, 429]);

interface Exchange {
  ctx?: { sourceElement?: Element; response?: { status: number } };
}

export function setUpFeedback(): void {
  const dialog = document.querySelector<HTMLDialogElement>("dialog#feedback");
  const place = document.getElementById("feedback-place");
  if (!dialog || !place) return;
  let focused: HTMLElement | null = null;
  const look = (): void => {
    if (place.childElementCount && !dialog.open) dialog.showModal();
    if (document.querySelector(".feedback-thanks")) keep("");
    const field = document.querySelector<HTMLTextAreaElement>("#feedback-text");
    if (field && !field.value) field.value = availableStorage()?.getItem(DRAFT) ?? "";
    const next =
      place.querySelector<HTMLElement>("[aria-invalid=true]") ?? place.querySelector<HTMLElement>(".feedback-thanks a");
    if (dialog.open && next !== focused) next?.focus(); // once: another part of the page may come later
    focused = next;
  };
  document.addEventListener("htmx:after:swap", look);
  look();
  document.addEventListener("input", ({ target }) => {
    if (target instanceof HTMLTextAreaElement && target.id === "feedback-text") keep(target.value);
  });
  dialog.addEventListener("click", (event) => {
    if (!(event.target as Element).closest("[data-close]")) return;
    event.preventDefault();
    dialog.close();
  });
  dialog.addEventListener("close", () => place.replaceChildren());
  document.addEventListener("htmx:error", (event) =>
    failed((event as CustomEvent<Exchange>).detail.ctx, "comment.unsent"),
  );
  document.addEventListener("htmx:after:request", (event) => {
    const { ctx } = (event as CustomEvent<Exchange>).detail;
    const status = ctx?.response?.status ?? 0;
    if (status >= 400 && !SHOWN_BESIDE.has(status)) failed(ctx, "error.status", status);
  });
}

function failed(ctx: Exchange["ctx"], key: string, status = 0): void {
  const source = ctx?.sourceElement;
  if (source?.id === "feedback-form") {
    const error = source.querySelector("[data-error]");
    if (error) error.textContent = say(key, { status });
  } else if (source?.getAttribute("hx-target") === "#feedback-place") {
    announce(say(status ? key : "error.unreachable", { status }));
  } else if (source?.closest("#helpful")) {
    announce(say(status ? key : "comment.unsent", { status }));
  }
}

function keep(text: string): void {
  try {
    if (text) availableStorage()?.setItem(DRAFT, text);
    else availableStorage()?.removeItem(DRAFT);
  } catch {
    // Storage is full or denied: the text stays in the field while the page is open.
  }
}
