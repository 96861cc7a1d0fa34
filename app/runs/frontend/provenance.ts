/**
 * The origin of an output: code, machine and kernel. If the cell would not produce it now, the output is dimmed and
 * shows where it comes from, with a button that brings back its code.
 */

import { announce } from "../../web/frontend/announce";
import { need } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";
import type { Machine, Run } from "./protocol";

/** A run's origin: the kernel is empty if its events do not name it, and null if the run never started. */
export interface Origin extends Machine {
  code: string;
  kernel: string | null;
}

/** A difference between an output and what the cell would produce now. */
export type Difference = "version" | "machine" | "session";

/** `gone`: the kernel has ended. Trailing whitespace does not count. */
export function differences(made: Origin, code: string, machine: Machine, gone: boolean): Difference[] {
  const found: Difference[] = [];
  if (made.code.trimEnd() !== code.trimEnd()) found.push("version");
  if (made.topology !== machine.topology || made.keras !== machine.keras) found.push("machine");
  else if (made.kernel !== null && gone) found.push("session");
  return found;
}

/** The live kernels, as last reported by the server. */
export class LiveKernels {
  private ids: ReadonlySet<string> | null = null;
  private askedAt = -Infinity;

  /** Stores the response to a request sent at `askedAt` (ms); `ids` is undefined if the server did not know. */
  told(ids: string | undefined, askedAt: number): void {
    if (ids === undefined || askedAt < this.askedAt) return;
    this.ids = new Set(ids.split(" ").filter(Boolean));
    this.askedAt = askedAt;
  }

  /** Whether a kernel has ended. Responses to requests before `since` (ms), when it may not have existed, do not count. */
  gone(kernel: string, since: number): boolean {
    return this.ids !== null && this.askedAt > since && !this.ids.has(kernel);
  }
}

/** The line above a cell's output, and the dimming of that output. */
export class ProvenanceLine {
  private readonly line: HTMLElement;
  private readonly output: HTMLElement;
  private said = "";

  constructor(
    private readonly cell: HTMLElement,
    private readonly title: string,
  ) {
    this.line = need(cell, ".provenance");
    this.output = need(cell, ".output");
  }

  /** Shows what differs, or nothing. `spoken`: also announces it, because the learner caused it. */
  show(found: readonly Difference[], run: Run, now: Machine, spoken: boolean): void {
    const machine = machineWords(this.cell, run, now);
    const sentences: Record<Difference, string> = {
      version: say("provenance.version"),
      machine: say("provenance.machine", { machine }),
      session: say("provenance.session"),
    };
    const words = found.map((difference) => sentences[difference]).join(" · ");
    if (words === this.said) return;
    this.said = words;
    const button = need<HTMLButtonElement>(this.line, "[data-action=show-code]");
    need(this.line, ".words").textContent = words;
    button.hidden = !found.includes("version");
    this.line.hidden = words === "";
    this.cell.toggleAttribute("data-stale", words !== "");
    if (words) this.output.setAttribute("aria-describedby", need(this.line, ".words").id);
    else this.output.removeAttribute("aria-describedby");
    if (words && spoken) announce(`${this.title}: ${words}`);
  }
}

/** The machine's label from the cell's picker, if it is there. */
function machineWords(cell: HTMLElement, { topology, keras }: Machine, now: Machine): string {
  const choices = document.querySelector<HTMLTemplateElement>(
    `template[data-choices="${CSS.escape(cell.dataset.group ?? "")}"]`,
  );
  const words = choices?.content.querySelector(`[value="${CSS.escape(topology)}"] + span .machine-words`)?.textContent;
  return (words ?? topology) + (keras === now.keras ? "" : `, Keras ${keras}`);
}
