/**
 * The session panel: it is about the machine of the cell that the learner works in, or that runs.
 *
 * The server renders it; this says which session it is to show, and takes care of the focus. In a narrow window the panel
 * is a sheet that a bar at the bottom opens, and each cell too.
 */

import type { Cell } from "./cell";
import type { Machine, Run } from "./protocol";

const DELAY_MS = 150;
/** As in lesson.css: here the panel has a place beside the lesson. */
const WIDE = "(min-width: 74.01rem)";

export class SessionPanel {
  /** The one to show; null until a cell was touched or ran: then it is that of the first cell, or a livelier one. */
  private shown: Machine | null = null;
  private followed = "";
  private telling = 0;
  private pressed = false;

  constructor(private readonly cells: Cell[]) {
    for (const kind of ["focusin", "pointerdown"] as const) {
      document.addEventListener(kind, ({ target }) => this.touched(target as Element));
    }
    document.addEventListener("click", ({ target }) => this.clicked(target as Element));
    document.addEventListener("htmx:config:request", (event) => this.ask(event as CustomEvent<Asking>));
    document.addEventListener("htmx:after:swap", () => this.swapped());
    const sheet = document.getElementById("session-sheet");
    sheet?.addEventListener("toggle", (event) => {
      if ((event as ToggleEvent).newState === "open") document.getElementById("session-title")?.focus();
    });
    window.matchMedia(WIDE).addEventListener("change", ({ matches }) => {
      if (matches && sheet?.matches(":popover-open")) sheet.hidePopover();
    });
  }

  /** Shows the session on this machine from now on. */
  show(machine: Machine): void {
    const same = this.shown?.topology === machine.topology && this.shown.keras === machine.keras;
    this.shown = machine;
    if (!same) this.tell();
  }

  /** Runs begin or end; `run` is the one at work, if there is any. */
  follow(run: Run | undefined): void {
    if (run && run.id !== this.followed) this.shown = { topology: run.topology, keras: run.keras };
    this.followed = run?.id ?? "";
    this.tell();
  }

  /** The panel listens for this and asks the server for its new state. */
  tell(): void {
    window.clearTimeout(this.telling);
    this.telling = window.setTimeout(() => document.body.dispatchEvent(new CustomEvent("lockstep:session")), DELAY_MS);
  }

  private touched(target: Element): void {
    const cell = this.cells.find(({ root }) => root.contains(target));
    if (cell) this.show(cell.machine);
  }

  private clicked(target: Element): void {
    this.pressed = Boolean(target.closest("#session button"));
    const other = target.closest<HTMLElement>("[data-show-topology]");
    if (other) this.show({ topology: other.dataset.showTopology ?? "", keras: Number(other.dataset.showKeras) });
  }

  private ask(event: CustomEvent<Asking>): void {
    const { ctx } = event.detail;
    const url = new URL(ctx.request.action, document.baseURI);
    if (!ctx.sourceElement.closest("#session") || url.searchParams.has("topology")) return;
    const { topology, keras } = this.shown ?? (this.cells[0] as Cell).machine;
    url.searchParams.set("topology", topology);
    url.searchParams.set("keras", String(keras));
    if (this.shown) url.searchParams.set("exactly", "true");
    ctx.request.action = url.pathname + url.search;
  }

  private swapped(): void {
    this.sayWhetherReal();
    this.forgetWhatIsPast();
    // A button of the panel may be gone once it has done its work: then the focus stays with the panel.
    const sheet = document.getElementById("session-sheet");
    const visible = sheet?.checkVisibility() ?? false;
    if (this.pressed && document.activeElement === document.body && visible)
      document.getElementById("session-title")?.focus();
  }

  /** The cells on the panel's machine say as it does whether that is simulated or real. */
  private sayWhetherReal(): void {
    const panel = document.querySelector<HTMLElement>("#session[data-topology]");
    const words = panel?.querySelector(".machine-words")?.textContent;
    if (!panel || !words) return;
    for (const { root, machine } of this.cells) {
      const mine = root.querySelector(".cell-top .machine-words");
      if (mine && machine.topology === panel.dataset.topology) mine.textContent = words;
    }
  }

  /** What became of a fault is said as long as the processes are as it left them: no "was killed" beside "running". */
  private forgetWhatIsPast(): void {
    const panel = document.getElementById("session");
    const said = document.getElementById("failure-result");
    const words = said?.querySelector<HTMLElement>("[data-key]");
    if (!panel || !said || !words) return;
    const { key } = panel.dataset;
    words.dataset.key ||= key; // a refusal is about the session as it is
    if (words.dataset.key === key) words.dataset.seen = "";
    else if ("seen" in words.dataset) said.replaceChildren();
  }
}

interface Asking {
  ctx: { sourceElement: Element; request: { action: string } };
}
