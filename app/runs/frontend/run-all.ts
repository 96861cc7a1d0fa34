/** Runs the page's cells one after the other, as long as they succeed. */

import { announce } from "../../web/frontend/announce";
import { say } from "../../web/frontend/strings";
import type { Cell } from "./cell";

export class RunAll {
  private going = false;
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
      if (!this.going) void this.start([...cell.above, cell]);
    };
  }

  private async start(cells: Cell[]): Promise<void> {
    this.set(true);
    for (const cell of cells) {
      if (!this.going) break;
      cell.root.scrollIntoView({ block: "nearest" });
      const outcome = await cell.runToEnd();
      if (outcome !== "ok" && !(outcome === "error" && cell.mayFail)) {
        if (this.going) announce(say("runAll.stopped", { cell: cell.title }));
        break;
      }
    }
    if (this.going) this.set(false);
  }

  private halt(): void {
    this.set(false);
    announce(say("runAll.halted"));
  }

  private set(going: boolean): void {
    this.going = going;
    this.button.setAttribute("aria-pressed", String(going));
    if (this.label) this.label.textContent = say(going ? "runAll.halt" : "runAll.start");
  }
}
