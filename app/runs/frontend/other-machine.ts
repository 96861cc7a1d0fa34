/** Notices about what only another session has, and the way to one: the menu of the cell, or the playground. */

import { make, need } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";

/** What notices ask for, by their codes: `NEEDS` in runners/wire/reports.py. */
export const NEEDS: Record<string, "keras-2" | "tpu" | "servers"> = {
  "keras-2-chosen": "keras-2",
  "keras-2-for-fit": "keras-2",
  "keras-2-for-fit-with-servers": "keras-2",
  "layers-of-tensorflow-1": "keras-2",
  "legacy-optimizer": "keras-2",
  "loss-scaling": "keras-2",
  "no-cluster": "servers",
  "no-tpu": "tpu",
  "only-in-keras-2": "keras-2",
  "renamed-in-keras-3": "keras-2",
};
const CHOICES = {
  "keras-2": "[data-pick=keras][value='2']",
  tpu: "[data-pick=topology][value^=tpu]",
  servers: "[data-pick=topology][value^=ps]",
};

/** A button that opens the cell's menu at what the notice asks for, or else a link to the playground, which has it. */
export function wayThere(code: string, output: HTMLElement): HTMLElement | null {
  const asked = NEEDS[code];
  if (asked === undefined) return null;
  const cell = output.closest<HTMLElement>(".cell");
  return (cell && toMenu(cell, CHOICES[asked])) ?? toPlayground();
}

function toMenu(cell: HTMLElement, choice: string): HTMLElement | null {
  const templates = [...document.querySelectorAll<HTMLTemplateElement>("template[data-choices]")];
  const offered = templates.find(({ dataset }) => dataset.choices === cell.dataset.group);
  if (!offered?.content.querySelector(choice)) return null;
  const button = make("button.again", { type: "button" }, say("hint.menu"));
  button.addEventListener("click", () => {
    const menu = need(cell, "[data-action=machine]");
    if (menu.getAttribute("aria-expanded") === "false") menu.click();
    need(cell, `.picker ${choice}`).focus();
  });
  return button;
}

function toPlayground(): HTMLElement | null {
  const link = document.querySelector<HTMLAnchorElement>(".foot-link[href$='/playground']");
  return link && make("a", { href: link.href }, say("hint.playground"));
}
