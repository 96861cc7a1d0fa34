/**
 * The choice of the machine for cells, if a lesson offers several. All cells with the same default and the same choices
 * share it, and it is stored in this browser.
 */

import { announce } from "../../web/frontend/announce";
import { make, need } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";
import type { Machine } from "./protocol";

type StorageArea = Pick<Storage, "getItem" | "setItem">;

/** The choices on the pages of one lesson, by group of cells. */
export class MachineChoices {
  constructor(
    private readonly lesson: string,
    private readonly storage: StorageArea | null,
  ) {}

  /** The choice for a group, if there is one and it is still offered. */
  find(group: string, topologies: string[], kerases: number[]): Machine | null {
    const { topology, keras } = this.read()[group] ?? {};
    const known =
      topology !== undefined && topologies.includes(topology) && keras !== undefined && kerases.includes(keras);
    return known ? { topology, keras } : null;
  }

  keep(group: string, machine: Machine): void {
    try {
      this.storage?.setItem(this.key(), JSON.stringify({ ...this.read(), [group]: machine }));
    } catch {
      // Storage is full or denied: the choice lasts as long as the page.
    }
  }

  private read(): Record<string, Partial<Machine>> {
    try {
      const kept = JSON.parse(this.storage?.getItem(this.key()) ?? "{}") as unknown;
      return typeof kept === "object" && kept !== null ? (kept as Record<string, Partial<Machine>>) : {};
    } catch {
      return {};
    }
  }

  private key(): string {
    return `lockstep:machine:${this.lesson}`;
  }
}

/** The picker of one cell. Its choices are in a template that all cells of the group share. */
class Picker {
  readonly group: string;
  private readonly button: HTMLButtonElement;
  private panel: HTMLElement | null = null;

  constructor(
    readonly root: HTMLElement,
    private readonly choices: DocumentFragment,
    private readonly chosen: (picker: Picker, machine: Machine) => void,
  ) {
    this.group = root.dataset.group ?? "";
    this.button = need(root, "[data-action=machine]");
    this.button.addEventListener("click", () => this.toggle(this.button.getAttribute("aria-expanded") === "false"));
  }

  /** All choices for `what`. */
  offered(what: "topology" | "keras"): string[] {
    return [...radios(this.choices, what)].map((radio) => radio.value);
  }

  /** Sets the machine for the cell's next run. */
  show({ topology, keras }: Machine): void {
    Object.assign(this.root.dataset, { topology, keras: String(keras) });
    this.check();
    const drawn = this.choices.querySelector(`[value="${topology}"] + span > .machine`);
    if (drawn) need(this.button, ".machine").replaceWith(drawn.cloneNode(true));
    const version = this.button.querySelector(".machine-keras");
    if (version) version.textContent = `Keras ${keras}`;
  }

  words(): string {
    return [".machine-words", ".machine-keras"]
      .map((part) => this.button.querySelector(part)?.textContent)
      .filter(Boolean)
      .join(", ");
  }

  private toggle(open: boolean): void {
    this.panel ??= this.make();
    this.panel.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
  }

  private make(): HTMLElement {
    const id = `${this.root.id}-machines`;
    const panel = make("div.picker", { id }, this.choices.cloneNode(true));
    need(panel, ".picker-note").id = `${id}-note`;
    for (const fieldset of panel.querySelectorAll("fieldset")) {
      const inputs = fieldset.querySelectorAll("input");
      for (const radio of inputs) radio.name = `${id}-${radio.dataset.pick}`;
      fieldset.setAttribute("aria-describedby", `${id}-note`);
      if (inputs.length === 1) fieldset.remove();
    }
    panel.addEventListener("change", () => this.chosen(this, this.picked(panel)));
    panel.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      this.toggle(false);
      this.button.focus();
    });
    need(this.root, ".cell-top").after(panel);
    this.button.setAttribute("aria-controls", id);
    this.panel = panel;
    this.check();
    return panel;
  }

  /** Marks the cell's machine. */
  private check(): void {
    for (const what of ["topology", "keras"] as const) {
      for (const radio of this.panel ? radios(this.panel, what) : [])
        radio.checked = radio.value === this.root.dataset[what];
    }
  }

  private picked(panel: HTMLElement): Machine {
    const of = (what: "topology" | "keras"): string =>
      [...radios(panel, what)].find((radio) => radio.checked)?.value ?? this.root.dataset[what] ?? "";
    return { topology: of("topology"), keras: Number(of("keras")) };
  }
}

function radios(within: ParentNode, what: string): NodeListOf<HTMLInputElement> {
  return within.querySelectorAll(`[data-pick=${what}]`);
}

/** The pickers of a page. `changed` gets the cell for which the learner has chosen a machine. */
export class MachinePickers {
  private readonly choices: MachineChoices;
  private readonly pickers: Picker[] = [];

  constructor(
    lesson: string,
    storage: StorageArea | null,
    private readonly changed: (root: HTMLElement, machine: Machine) => void,
  ) {
    this.choices = new MachineChoices(lesson, storage);
  }

  /** Sets up the picker of a cell, if it has one, with the machine that was chosen before. */
  add(root: HTMLElement): void {
    const templates = [...document.querySelectorAll<HTMLTemplateElement>("template[data-choices]")];
    const template = templates.find(({ dataset }) => dataset.choices === root.dataset.group);
    if (!template) return;
    const picker = new Picker(root, template.content, (chosen, machine) => this.choose(chosen, machine));
    this.pickers.push(picker);
    const [topologies, kerases] = [picker.offered("topology"), picker.offered("keras").map(Number)];
    const kept = this.choices.find(picker.group, topologies, kerases);
    if (kept) picker.show(kept);
  }

  private choose({ group, root }: Picker, machine: Machine): void {
    this.choices.keep(group, machine);
    const all = this.pickers.filter((picker) => picker.group === group);
    for (const picker of all) picker.show(machine);
    announce(say("machine.chosen", { machine: all[0]?.words() ?? "" }));
    this.changed(root, machine);
  }
}
