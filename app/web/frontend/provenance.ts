/**
 * What made an output: the code, the machine and the kernel. Where the cell as it is now would not make it, the output is
 * dimmed and says where it comes from, with the code that made it one press away.
 */

import { announce } from "./announce";
import { need } from "./element";
import type { Machine, Run } from "./protocol";
import { say } from "./strings";

/** Of a run: the kernel's name is empty where its events do not tell it, and null where it never started. */
export interface Origin extends Machine {
  code: string;
  kernel: string | null;
}

/** In what an output differs from what the cell would make now. */
export type Difference = "version" | "machine" | "session";

/** `gone`: its kernel is known to have ended. White space at the end of code changes nothing. */
export function differences(made: Origin, code: string, machine: Machine, gone: boolean): Difference[] {
  const found: Difference[] = [];
  if (made.code.trimEnd() !== code.trimEnd()) found.push("version");
  if (made.topology !== machine.topology || made.keras !== machine.keras) found.push("machine");
  else if (made.kernel !== null && gone) found.push("session");
  return found;
}

/** The kernels that are alive, as far as the server has told. */
export class LiveKernels {
  private ids: ReadonlySet<string> | null = null;
  private askedAt = -Infinity;

  /** An answer to a question asked at `askedAt` (ms); `ids` is undefined where the server did not know. */
  told(ids: string | undefined, askedAt: number): void {
    if (ids === undefined || askedAt < this.askedAt) return;
    this.ids = new Set(ids.split(" ").filter(Boolean));
    this.askedAt = askedAt;
  }

  /** Whether it is gone. Answers to questions from before `since` (ms) may have missed that it came. */
  gone(kernel: string, since: number): boolean {
    return this.ids !== null && this.askedAt > since && !this.ids.has(kernel);
  }
}

/** The line above a cell's output, and the look of that output. */
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

  /** Shows what differs; nothing if all is as it was. `spoken`: also to those who listen, as they did it themselves. */
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

/** In the words of the cell's machine picker, where it has them. */
function machineWords(cell: HTMLElement, { topology, keras }: Machine, now: Machine): string {
  const choices = document.querySelector<HTMLTemplateElement>(
    `template[data-choices="${CSS.escape(cell.dataset.group ?? "")}"]`,
  );
  const words = choices?.content.querySelector(`[value="${CSS.escape(topology)}"] + span .machine-words`)?.textContent;
  return (words ?? topology) + (keras === now.keras ? "" : `, Keras ${keras}`);
}
