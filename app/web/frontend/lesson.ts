/** A page with cells: sets each up, restores what ran before, and tells the session card when something changes. */

import { untilAnswered } from "./retry";
import { Board } from "./board";
import { Cell } from "./cell";
import { Drafts, localShelf } from "./drafts";
import { RunAll } from "./run-all";

const SESSION_DELAY_MS = 150;

export function setUpCells(): void {
  const roots = [...document.querySelectorAll<HTMLElement>("section.cell[data-cell]")];
  const lesson = roots[0]?.dataset.lesson;
  if (!lesson) return;
  const board = new Board();
  const drafts = new Drafts(lesson, localShelf());
  const cells = roots.map((root) => new Cell(root, board, drafts));
  cells.forEach((cell, i) => {
    cell.above = cells.slice(0, i).filter((other) => other.machine === cell.machine);
    const next = cells[i + 1];
    if (next) cell.onward = () => void next.edit();
  });
  const button = document.querySelector<HTMLButtonElement>("[data-action=run-all]");
  if (button) new RunAll(button, cells);
  board.onChange(tellSession);
  keepFocusWithSession();
  window.addEventListener("pagehide", () => cells.forEach((cell) => cell.keep()));
  void untilAnswered(() => board.restore(lesson, (name) => cells.find((cell) => cell.name === name)));
}

let telling = 0;

/** The session card listens for this and asks the server for its new state. */
function tellSession(): void {
  window.clearTimeout(telling);
  telling = window.setTimeout(() => document.body.dispatchEvent(new CustomEvent("lockstep:session")), SESSION_DELAY_MS);
}

/** A button of the session card may be gone once it has done its work: then the focus stays with the card. */
function keepFocusWithSession(): void {
  let pressed = false;
  document.addEventListener("click", ({ target }) => (pressed = Boolean((target as Element).closest("#session button"))));
  document.addEventListener("htmx:after:swap", () => {
    if (pressed && document.activeElement === document.body) document.getElementById("session-title")?.focus();
  });
}
