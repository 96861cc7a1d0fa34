/** Runs the page's cells one after the other, as long as they succeed. A cell that asks for a guess first is waited for. */

import { announce } from "../../web/frontend/announce";
import { say } from "../../web/frontend/strings";
import type { Cell } from "./cell";

export class RunAll {
  /** The cells that are running; null for none. */
  private going: Cell[] | null = null;
  private turn: Cell | null = null;
  private readonly label: HTMLElement | null;

  constructor(
    private readonly button: HTMLButtonElement,
    private readonly cells: Cell[],
  ) {
    this.label = button.querySelector(".label");
    button.addEventListener("click", () => {
      if (this.going) this.halt();
      else void this.start([...this.cells]);
    });
    for (const cell of cells) this.add(cell);
  }

  /** Lets a cell run those above it first. */
  add(cell: Cell): void {
    cell.againFromFirst = () => {
      if (!this.going || !this.turn?.atWork) void this.start([...cell.above, cell]);
    };
  }

  private async start(cells: Cell[]): Promise<void> {
    this.turn?.waitNoLonger();
    this.set(cells);
    for (const cell of cells) {
      this.turn = cell;
      cell.root.scrollIntoView({ block: "nearest" });
      const outcome = await cell.runToEnd();
      if (this.going !== cells) return;
      if (outcome !== "ok" && !(outcome === "error" && cell.mayFail)) {
        announce(say("runAll.stopped", { cell: cell.title }));
        break;
      }
    }
    this.set(null);
  }

  private halt(): void {
    this.set(null);
    this.turn?.waitNoLonger();
    announce(say("runAll.halted"));
  }

  private set(going: Cell[] | null): void {
    this.going = going;
    this.button.setAttribute("aria-pressed", String(going !== null));
    if (this.label) this.label.textContent = say(going ? "runAll.halt" : "runAll.start");
  }
}
