/** Sets up a page with cells: restores earlier runs, and tells the session panel about changes. */

import { availableStorage, currentAccount } from "../../accounts/frontend/account-storage";
import { Exercise } from "../../exercises/frontend/exercise";
import { setUpPredictions } from "../../exercises/frontend/prediction";
import { setUpDownloads } from "../../exports/frontend/downloads";
import { scratchCells, send } from "../../runs/frontend/api";
import { Cell } from "../../runs/frontend/cell";
import { Drafts, moveDrafts } from "../../runs/frontend/drafts";
import { MachinePickers } from "../../runs/frontend/machine-picker";
import { LiveKernels } from "../../runs/frontend/provenance";
import { retryUntilAnswered } from "../../runs/frontend/retry";
import { RunAll } from "../../runs/frontend/run-all";
import { RunManager } from "../../runs/frontend/run-manager";
import type { ScratchCells, ScratchPage } from "../../runs/frontend/scratch-cells";
import { SessionPanel } from "../../runs/frontend/session-panel";
import { setUpViewOptions } from "../../runs/frontend/view-options";
import { make } from "../../web/frontend/element";
import { storeSpace } from "../../web/frontend/reserved-space";
import { language, say } from "../../web/frontend/strings";
import { ownCellSpace, ownCellsShown, setUpWorkSpace, workSpace } from "./late-content";

/** Moves drafts that this browser has stored under former names of the lesson or its cells. */
function followRenames(lesson: string, roots: HTMLElement[]): void {
  const [storage, account] = [availableStorage(), currentAccount()];
  if (!storage || account === null) return;
  const course = lesson.slice(0, lesson.indexOf("/") + 1);
  const former = formerNames(document.querySelector<HTMLElement>("article[data-was]"));
  const cells = roots.flatMap((root) =>
    formerNames(root).map((was): [string, string] => [was, root.dataset.cell ?? ""]),
  );
  moveDrafts(
    storage,
    account,
    lesson,
    former.map((slug) => course + slug),
    new Map(cells),
  );
}

function formerNames(place: HTMLElement | null): string[] {
  return place?.dataset.was?.split(" ") ?? [];
}

export function setUpCells(): void {
  const roots = [...document.querySelectorAll<HTMLElement>("section.cell[data-cell]")];
  const scratch = document.querySelector<HTMLElement>("[data-scratch]");
  const lesson = scratch?.dataset.scratch ?? roots[0]?.dataset.lesson;
  if (!lesson) {
    setUpDownloads([]);
    return;
  }
  setUpViewOptions();
  setUpWorkSpace();
  const runs = new RunManager();
  followRenames(lesson, roots);
  const drafts = new Drafts(lesson, availableStorage(), currentAccount);
  const kernels = new LiveKernels();
  const own = roots.map((root) => new Cell(root, runs, drafts, kernels));
  const cells = new CellList([...own]);
  for (const cell of own) {
    const exercise = cell.root.querySelector<HTMLElement>(".exercise");
    if (exercise) new Exercise(exercise, cell);
  }
  setUpPredictions(own);
  const button = document.querySelector<HTMLButtonElement>("[data-action=run-all]");
  const runAll = button && new RunAll(button, cells.all);
  const panel = new SessionPanel(cells.all, runs);
  const pickers = new MachinePickers(lesson, availableStorage(), (root, machine) => {
    const cell = cells.all.find((each) => each.root === root);
    cell?.moved();
    for (const each of cells.all) each.compare(each === cell);
    panel.show(machine);
  });
  for (const root of roots) pickers.add(root);
  const bar = document.querySelector<HTMLElement>(".page-machine");
  if (bar) {
    pickers.add(bar);
    panel.show({ topology: bar.dataset.topology ?? "", keras: Number(bar.dataset.keras) });
  }
  runs.onChange(() => panel.follow(runs.running()));
  followSession(lesson, panel);
  hearOfKernels(lesson, kernels, () => {
    for (const cell of cells.all) cell.compare();
  });
  window.addEventListener("pagehide", () => {
    for (const cell of cells.all) cell.keep();
    const cellSpace = cells.all.flatMap((cell) => cell.space());
    storeSpace([...cellSpace, ...workSpace(), ...ownCellSpace(), ...panel.space()]);
  });
  shareDrafts(lesson, own, drafts);
  setUpDownloads(own);
  let restored = false;
  const page: ScratchPage = {
    lesson,
    drafts,
    add: (root, store) => {
      const cell = new Cell(root, runs, store, kernels);
      pickers.add(root);
      runAll?.add(cell);
      cells.add(cell);
      if (restored) cell.restored();
      return cell;
    },
    remove: (cell) => cells.remove(cell),
    moved: () => cells.arrange(),
  };
  const complete = (scratch ? addScratchCells(page) : Promise.resolve()).finally(ownCellsShown);
  void complete
    .then(() => retryUntilAnswered(() => runs.restore(lesson, (name) => cells.all.find((cell) => cell.name === name))))
    .finally(() => {
      restored = true;
      for (const cell of cells.all) cell.restored();
    });
}

/** Shows the learner's own cells. Their script is loaded if there are any, or when the first one is added. */
async function addScratchCells(page: ScratchPage): Promise<void> {
  const stored = retryUntilAnswered(() => scratchCells(page.lesson));
  let made: Promise<ScratchCells> | null = null;
  const start = async (): Promise<ScratchCells> => {
    const html = (await stored) ?? "";
    made ??= import("../../runs/frontend/scratch-cells").then((chunk) => new chunk.ScratchCells(page, html));
    made.catch(() => {
      made = null; // the next press tries again
    });
    return made;
  };
  document.addEventListener("click", ({ target }) => {
    const button = (target as Element).closest<HTMLElement>("[data-after] button");
    if (!button) return;
    button.parentElement?.querySelector("[role=alert]")?.remove();
    const failed = (): void => button.parentElement?.append(make("span", { role: "alert" }, say("error.unreachable")));
    void start().then((cells) => cells.pressed(button), failed);
  });
  if (await stored) await start();
}

/** The cells of a page in its order, in which the learner can add and move some. */
class CellList {
  constructor(readonly all: Cell[]) {
    this.arrange();
  }

  add(cell: Cell): void {
    this.all.push(cell);
    this.arrange();
  }

  remove(cell: Cell): void {
    this.all.splice(this.all.indexOf(cell), 1);
    this.arrange();
  }

  arrange(): void {
    const before = Node.DOCUMENT_POSITION_PRECEDING;
    this.all.sort((one, other) => (one.root.compareDocumentPosition(other.root) & before ? 1 : -1));
    this.all.forEach((cell, i) => {
      cell.before = this.all.slice(0, i);
      const next = this.all[i + 1];
      cell.onward = () => next?.edit();
    });
  }
}

/** Shares drafts with the other browsers of the account, once the page knows that there is one. */
function shareDrafts(lesson: string, cells: Cell[], drafts: Drafts): void {
  const look = (): void => {
    if (!currentAccount()) return;
    document.removeEventListener("htmx:after:swap", look);
    void import("../../runs/frontend/draft-sync").then(({ DraftSync }) =>
      new DraftSync(lesson, cells, drafts, currentAccount).start(),
    );
  };
  document.addEventListener("htmx:after:swap", look);
  look();
}

/**
 * Notices at once when the session ends: on a full node, it may be evicted for someone who is waiting. Only visible
 * pages listen, and only while nothing runs, because browsers allow few connections to a server.
 */
function followSession(lesson: string, panel: SessionPanel): void {
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
      panel.tell();
    });
    stream.addEventListener(
      "error",
      ({ target }) => (target as EventSource).readyState === EventSource.CLOSED && leave(),
    );
  };
  document.addEventListener("htmx:after:swap", look);
  window.addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => {
    look();
    if (!document.hidden) panel.tell();
  });
}

/** Reads the live kernels from the session panel; on a page without the panel, requests it without showing it. */
function hearOfKernels(lesson: string, kernels: LiveKernels, heard: () => void): void {
  const asked = new WeakMap<object, number>();
  const hear = (card: HTMLElement | null, at: number): void => {
    kernels.told(card?.dataset.kernels, at);
    heard();
  };
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = (event as CustomEvent<{ ctx: { sourceElement: Element; request: { action: string } } }>).detail;
    if (ctx.sourceElement.closest("#session") && !ctx.request.action.includes("/failures"))
      asked.set(ctx, performance.now());
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const at = asked.get((event as CustomEvent<{ ctx: object }>).detail.ctx);
    if (at !== undefined) hear(document.getElementById("session"), at);
  });
  if (document.getElementById("session")) return;
  const at = performance.now();
  void sessionCard(lesson).then(
    (card) => hear(card, at),
    () => undefined,
  );
}

async function sessionCard(lesson: string): Promise<HTMLElement | null> {
  const response = await send(`/${language()}/session?lesson=${encodeURIComponent(lesson)}`);
  return new DOMParser().parseFromString(await response.text(), "text/html").getElementById("session");
}
