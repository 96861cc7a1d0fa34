/**
 * The session panel: shows the machine of the cell that the learner uses or that is running.
 *
 * The server renders it; this module decides which session it shows, and manages the focus. In a narrow window, a bar
 * at the bottom, or any cell, opens the panel as a sheet.
 */

import { heightRule } from "../../web/frontend/reserved-space";
import type { Cell } from "./cell";
import type { Machine, Run } from "./protocol";
import type { RunManager } from "./run-manager";

const DELAY_MS = 150;
/** As in lesson.css: from this width on, the panel is next to the lesson. */
const WIDE = "(min-width: 74.01rem)";

export class SessionPanel {
  /** The machine to show; null until a cell is used or run: then the first cell's, or one with a more active session. */
  private shown: Machine | null = null;
  private followed = "";
  private telling = 0;
  private pressed = false;

  constructor(
    private readonly cells: Cell[],
    private readonly runs: RunManager,
  ) {
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

  /** Called when runs start or end; `run` is the active one, if any. */
  follow(run: Run | undefined): void {
    if (run && run.id !== this.followed) this.shown = { topology: run.topology, keras: run.keras };
    this.followed = run?.id ?? "";
    this.tell();
  }

  /** Makes the panel request its new state from the server. */
  tell(): void {
    window.clearTimeout(this.telling);
    this.telling = window.setTimeout(() => document.body.dispatchEvent(new CustomEvent("lockstep:session")), DELAY_MS);
  }

  /** A style rule that keeps the space of the card free until its content has arrived. */
  space(): string[] {
    const card = document.getElementById("session");
    return card?.offsetHeight ? [heightRule('#session[data-state="unknown"]', card)] : [];
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
    if (ctx.sourceElement.id === "session-restart") this.letRunsWait(ctx);
    const url = new URL(ctx.request.action, document.baseURI);
    if (!ctx.sourceElement.closest("#session") || url.searchParams.has("topology")) return;
    const machine = this.shown ?? this.cells[0]?.machine;
    if (!machine) return;
    const { topology, keras } = machine;
    url.searchParams.set("topology", topology);
    url.searchParams.set("keras", String(keras));
    if (this.shown) url.searchParams.set("exactly", "true");
    ctx.request.action = url.pathname + url.search;
  }

  /** A run that is started after the press of Restart belongs to the new session, so it is sent after the answer. */
  private letRunsWait(ctx: Asking["ctx"]): void {
    const request = ctx.fetch ?? fetch;
    ctx.fetch = (input, init) => {
      const response = request(input, init);
      void this.runs.inTurn(() =>
        response.then(
          () => undefined,
          () => undefined,
        ),
      );
      return response;
    };
  }

  private swapped(): void {
    this.sayWhetherReal();
    this.forgetWhatIsPast();
    // A button of the panel may disappear after its action: then the focus stays in the panel, or goes to its bar.
    if (!this.pressed || document.activeElement !== document.body) return;
    const sheet = document.getElementById("session-sheet");
    document.getElementById(sheet?.checkVisibility() ? "session-title" : "session-bar")?.focus();
  }

  /** Makes the cells on the panel's machine also show whether it is simulated or real. */
  private sayWhetherReal(): void {
    const panel = document.querySelector<HTMLElement>("#session[data-topology]");
    const words = panel?.querySelector(".machine-words")?.textContent;
    if (!panel || !words) return;
    for (const { root, machine } of this.cells) {
      const mine = root.querySelector(".cell-top .machine-words");
      if (mine && mine.textContent !== words && machine.topology === panel.dataset.topology) mine.textContent = words;
    }
  }

  /** Hides the result of a failure once the processes have changed: no "was killed" next to "running". */
  private forgetWhatIsPast(): void {
    const panel = document.getElementById("session");
    const said = document.getElementById("failure-result");
    const words = said?.querySelector<HTMLElement>("[data-key]");
    if (!panel || !said || !words) return;
    const { key } = panel.dataset;
    words.dataset.key ||= key; // a refusal is about the current state
    if (words.dataset.key === key) words.dataset.seen = "";
    else if ("seen" in words.dataset) said.replaceChildren();
  }
}

interface Asking {
  ctx: { sourceElement: Element; request: { action: string }; fetch?: typeof fetch };
}
