/**
 * Predictions: a cell with an open prediction asks for a guess before it runs. Once that is answered, the cell runs,
 * and then the guess is shown next to the result.
 */

import type { Cell } from "../../runs/frontend/cell";
import { announce } from "../../web/frontend/announce";
import { make } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";

export function setUpPredictions(cells: Cell[]): void {
  const asked = cells.filter((cell) => find(cell));
  if (!asked.length) return;
  for (const cell of asked) cell.mayRun = (awaited) => ask(cell, awaited);
  const sent = new Set<string>();
  const ran = new Set<string>();
  document.addEventListener("submit", (event) => {
    const prediction = (event.target as Element).closest(".prediction");
    if (prediction) sent.add(prediction.id);
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const id = (event.target as Element).closest?.(".prediction")?.id ?? "";
    const prediction = document.getElementById(id);
    if (prediction && ran.delete(id)) announce(prediction.querySelector(".question-status")?.textContent ?? "");
    if (!prediction || !sent.delete(id) || prediction.dataset.state === "open") return;
    const cell = asked.find(({ name }) => name === prediction.dataset.for);
    if (!cell || !find(cell, "waiting")) return;
    if (document.activeElement === document.body) focusRun(cell);
    cell.press();
  });
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest("[data-action=run-predicted]");
    const prediction = button?.closest<HTMLElement>(".prediction");
    const cell = prediction && asked.find(({ name }) => name === prediction.dataset.for);
    if (!cell) return;
    focusRun(cell);
    cell.press();
  });
  document.addEventListener("lockstep:finished", (event) => {
    const cell = asked.find(({ root }) => root === event.target);
    const waiting = cell ? document.querySelectorAll(selector(cell, "waiting")) : [];
    for (const prediction of waiting) {
      if (!(event as CustomEvent<{ restored: boolean }>).detail.restored) ran.add(prediction.id);
      prediction.dispatchEvent(new Event("lockstep:ran"));
    }
  });
}

function focusRun(cell: Cell): void {
  cell.root.querySelector<HTMLElement>("[data-action=run]")?.focus();
}

/** Whether all predictions are answered; otherwise, focuses the first open one, which says why. */
function ask(cell: Cell, awaited: boolean): boolean {
  const open = find(cell, "open");
  if (!open) return true;
  const why = say(awaited ? "prediction.firstOfAll" : "prediction.first", { cell: cell.title });
  open.querySelector(".question-status")?.replaceChildren(make("b", {}, why));
  open.scrollIntoView({ block: "nearest" });
  open.querySelector<HTMLElement>("input, select")?.focus();
  return false;
}

function find(cell: Cell, state?: "open" | "waiting"): HTMLElement | null {
  return document.querySelector(selector(cell, state));
}

function selector(cell: Cell, state?: "open" | "waiting"): string {
  return `.prediction[data-for="${CSS.escape(cell.name)}"]${state ? `[data-state="${state}"]` : ""}`;
}
