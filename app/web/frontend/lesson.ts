/** A page with cells: sets each up, restores what ran before, and tells the session card when something changes. */

import { currentAccount, localShelf } from "./account-storage";
import { untilAnswered } from "./retry";
import { send } from "./api";
import { Board } from "./board";
import { Cell } from "./cell";
import { Drafts } from "./drafts";
import { setUpPickers } from "./machine-picker";
import { LiveKernels } from "./provenance";
import { RunAll } from "./run-all";
import { language } from "./strings";

const SESSION_DELAY_MS = 150;

export function setUpCells(): void {
  const roots = [...document.querySelectorAll<HTMLElement>("section.cell[data-cell]")];
  const lesson = roots[0]?.dataset.lesson;
  if (!lesson) return;
  const board = new Board();
  const drafts = new Drafts(lesson, localShelf(), currentAccount);
  const kernels = new LiveKernels();
  const cells = roots.map((root) => new Cell(root, board, drafts, kernels));
  cells.forEach((cell, i) => {
    cell.before = cells.slice(0, i);
    const next = cells[i + 1];
    if (next) cell.onward = () => void next.edit();
  });
  const button = document.querySelector<HTMLButtonElement>("[data-action=run-all]");
  if (button) new RunAll(button, cells);
  setUpPickers(roots, lesson, localShelf(), (root) => {
    cells.find((cell) => cell.root === root)?.moved();
    for (const cell of cells) cell.compare(cell.root === root);
    tellSession();
  });
  board.onChange(tellSession);
  followSession(lesson);
  askAboutChosen(cells);
  hearOfKernels(lesson, kernels, () => cells.forEach((cell) => cell.compare()));
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

/**
 * Hears at once when the session is gone: on a full node it may have to give its place to someone who waits. Only a page
 * that is looked at listens, and only while nothing runs: a browser has few connections to one server.
 */
function followSession(lesson: string): void {
  const url = `/${document.documentElement.lang}/session/stream?lesson=${encodeURIComponent(lesson)}`;
  let stream: EventSource | null = null;
  let of = "";
  const leave = (): void => {
    stream?.close();
    stream = null;
  };
  const look = (): void => {
    const card = document.querySelector<HTMLElement>("#session[data-state=idle]");
    if (document.hidden || !card || card.dataset.topology !== of) leave();
    if (document.hidden || !card || stream) return;
    of = card.dataset.topology ?? "";
    stream = new EventSource(url);
    stream.addEventListener("changed", () => {
      leave();
      tellSession();
    });
    stream.addEventListener("error", ({ target }) => (target as EventSource).readyState === EventSource.CLOSED && leave());
  };
  document.addEventListener("htmx:after:swap", look);
  window.addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => {
    look();
    if (!document.hidden) tellSession();
  });
}

/** The session card is about the machine that the lesson's cells run on now, of which the first speaks for all. */
function askAboutChosen(cells: Cell[]): void {
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = (event as CustomEvent<{ ctx: { sourceElement: Element; request: { action: string } } }>).detail;
    const { topology, keras } = (cells[0] as Cell).machine;
    const url = new URL(ctx.request.action, document.baseURI);
    if (!ctx.sourceElement.closest("#session") || url.searchParams.has("topology")) return;
    url.searchParams.set("topology", topology);
    url.searchParams.set("keras", String(keras));
    ctx.request.action = url.pathname + url.search;
  });
  document.addEventListener("htmx:after:swap", () => sayWhetherReal(cells));
}

/** The session card names the kernels that are alive; where there is none, it is asked for and not shown. */
function hearOfKernels(lesson: string, kernels: LiveKernels, heard: () => void): void {
  const asked = new WeakMap<object, number>();
  const hear = (card: HTMLElement | null, at: number): void => {
    kernels.told(card?.dataset.kernels, at);
    heard();
  };
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = (event as CustomEvent<{ ctx: { sourceElement: Element; request: { action: string } } }>).detail;
    if (ctx.sourceElement.closest("#session") && !ctx.request.action.includes("/faults")) asked.set(ctx, performance.now());
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const at = asked.get((event as CustomEvent<{ ctx: object }>).detail.ctx);
    if (at !== undefined) hear(document.getElementById("session"), at);
  });
  if (document.getElementById("session")) return;
  const at = performance.now();
  void sessionCard(lesson).then((card) => hear(card, at), () => undefined);
}

async function sessionCard(lesson: string): Promise<HTMLElement | null> {
  const response = await send(`/${language()}/session?lesson=${encodeURIComponent(lesson)}`);
  return new DOMParser().parseFromString(await response.text(), "text/html").getElementById("session");
}

/** The cells on the session's machine say as the session card does whether it is simulated or real. */
function sayWhetherReal(cells: Cell[]): void {
  const panel = document.querySelector<HTMLElement>("#session[data-topology]");
  const words = panel?.querySelector(".machine-words")?.textContent;
  if (!panel || !words) return;
  for (const { root, machine } of cells) {
    const mine = root.querySelector(".cell-top .machine-words");
    if (mine && machine.topology === panel.dataset.topology) mine.textContent = words;
  }
}

/** A button of the session card may be gone once it has done its work: then the focus stays with the card. */
function keepFocusWithSession(): void {
  let pressed = false;
  document.addEventListener("click", ({ target }) => (pressed = Boolean((target as Element).closest("#session button"))));
  document.addEventListener("htmx:after:swap", () => {
    if (pressed && document.activeElement === document.body) document.getElementById("session-title")?.focus();
  });
}
