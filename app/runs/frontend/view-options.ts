/** How code is shown in this browser: with line numbers, with wrapped lines. The page's styles follow `data-code`. */

import { availableStorage } from "../../accounts/frontend/account-storage";

export type ViewOption = "numbers" | "wrap";

const KEY = "lockstep:code";

export function readViewOptions(): ViewOption[] {
  const chosen = document.documentElement.dataset.code?.split(" ") ?? [];
  return (["numbers", "wrap"] as const).filter((option) => chosen.includes(option));
}

export function storeViewOptions(options: ViewOption[]): void {
  const chosen = options.join(" ");
  document.documentElement.dataset.code = chosen;
  try {
    availableStorage()?.setItem(KEY, chosen);
  } catch {
    // Storage is full or denied: the choice lasts as long as the page.
  }
}

export function setUpViewOptions(): void {
  document.documentElement.dataset.code = availableStorage()?.getItem(KEY) ?? "";
}
