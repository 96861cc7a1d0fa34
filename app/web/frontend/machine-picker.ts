/**
 * Which machine cells run on, where a lesson offers several. The choice is one for all cells that offer the same and start
 * with the same, and is kept in this browser.
 */

import { announce } from "./announce";
import { need } from "./element";
import type { Machine } from "./protocol";
import { say } from "./strings";

type Shelf = Pick<Storage, "getItem" | "setItem">;

/** What was chosen on the pages of one lesson, by group of cells. */
export class Choices {
  constructor(
    private readonly lesson: string,
    private readonly shelf: Shelf | null,
  ) {}

  /** The choice of a group, if it was made and is still among those offered. */
  find(group: string, topologies: string[], kerases: number[]): Machine | null {
    const { topology, keras } = this.read()[group] ?? {};
    const known = topology !== undefined && topologies.includes(topology) && keras !== undefined && kerases.includes(keras);
    return known ? { topology, keras } : null;
  }

  keep(group: string, machine: Machine): void {
    try {
      this.shelf?.setItem(this.key(), JSON.stringify({ ...this.read(), [group]: machine }));
    } catch {
      // Storage is full or forbidden: the choice lasts as long as the page.
    }
  }

  private read(): Record<string, Partial<Machine>> {
    try {
      const kept = JSON.parse(this.shelf?.getItem(this.key()) ?? "{}") as unknown;
      return typeof kept === "object" && kept !== null ? (kept as Record<string, Partial<Machine>>) : {};
    } catch {
      return {};
    }
  }

  private key(): string {
    return `lockstep:machine:${this.lesson}`;
  }
}

/** The picker of one cell. */
class Picker {
  readonly group: string;

  constructor(
    private readonly root: HTMLElement,
    private readonly panel: HTMLElement,
    chosen: (picker: Picker, machine: Machine) => void,
  ) {
    this.group = panel.dataset.group ?? "";
    const button = need<HTMLButtonElement>(root, "[data-action=machine]");
    const toggle = (open: boolean): void => {
      panel.hidden = !open;
      button.setAttribute("aria-expanded", String(open));
    };
    button.addEventListener("click", () => toggle(Boolean(panel.hidden)));
    panel.addEventListener("change", () => chosen(this, this.picked()));
    panel.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      toggle(false);
      button.focus();
    });
  }

  /** All that may be picked of `what`. */
  offered(what: "topology" | "keras"): string[] {
    const radios = [...this.radios(what)].map((radio) => radio.value);
    return radios.length ? radios : [this.root.dataset[what] ?? ""];
  }

  /** The cell runs there from now on. */
  show({ topology, keras }: Machine): void {
    for (const radio of this.radios("topology")) radio.checked = radio.value === topology;
    for (const radio of this.radios("keras")) radio.checked = radio.value === String(keras);
    Object.assign(this.root.dataset, { topology, keras: String(keras) });
    const drawn = this.panel.querySelector("[data-pick=topology]:checked + span > .machine");
    if (drawn) need(this.root, ".machine-button .machine").replaceWith(drawn.cloneNode(true));
    const version = this.root.querySelector(".machine-keras");
    if (version) version.textContent = `Keras ${keras}`;
  }

  words(): string {
    return [".machine-words", ".machine-keras"]
      .map((part) => this.root.querySelector(`.machine-button ${part}`)?.textContent)
      .filter(Boolean)
      .join(", ");
  }

  private picked(): Machine {
    const of = (what: "topology" | "keras"): string =>
      [...this.radios(what)].find((radio) => radio.checked)?.value ?? this.root.dataset[what] ?? "";
    return { topology: of("topology"), keras: Number(of("keras")) };
  }

  private radios(what: string): NodeListOf<HTMLInputElement> {
    return this.panel.querySelectorAll(`[data-pick=${what}]`);
  }
}

/** Sets up the pickers of a page's cells; `changed` is called when the learner has chosen. */
export function setUpPickers(roots: HTMLElement[], lesson: string, shelf: Shelf | null, changed: () => void): void {
  const choices = new Choices(lesson, shelf);
  const pickers: Picker[] = [];
  const chosen = ({ group }: Picker, machine: Machine): void => {
    choices.keep(group, machine);
    const all = pickers.filter((picker) => picker.group === group);
    for (const picker of all) picker.show(machine);
    announce(say("machine.chosen", { machine: all[0]?.words() ?? "" }));
    changed();
  };
  for (const root of roots) {
    const panel = root.querySelector<HTMLElement>(".picker");
    if (!panel) continue;
    const picker = new Picker(root, panel, chosen);
    pickers.push(picker);
    const kept = choices.find(picker.group, picker.offered("topology"), picker.offered("keras").map(Number));
    if (kept) picker.show(kept);
  }
}
