/**
 * The cells that a learner adds to a page, a chunk of its own: adds, names, moves and deletes them, one or all, and puts
 * those that are stored in their places. The server renders them; their code is stored by `scratch-store.ts`.
 *
 * Each cell is followed by a row of buttons that adds another one: `data-after` has the name of the cell above, and is
 * empty at the start of a page. A cell of the learner's own is in a `.scratch`, together with that row.
 */

import { announce } from "../../web/frontend/announce";
import { make, need } from "../../web/frontend/element";
import { say, sayCount } from "../../web/frontend/strings";
import { addScratchCell, deleteScratchCell, deleteScratchCells, moveScratchCell, type NewScratchCell } from "./api";
import type { Cell, CodeStore } from "./cell";
import type { Drafts } from "./drafts";
import css from "./own-cells.css";
import { failure, ScratchStore } from "./scratch-store";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
document.adoptedStyleSheets.push(sheet);

/** The page, as this module needs it. */
export interface ScratchPage {
  lesson: string;
  drafts: Drafts;
  add(root: HTMLElement, store: CodeStore): Cell;
  remove(cell: Cell): void;
  /** Called when cells have changed their places. */
  moved(): void;
}

interface Entry {
  box: HTMLElement;
  name: string;
  store: ScratchStore;
  /** Null for a text. */
  cell: Cell | null;
}

export class ScratchCells {
  private readonly entries = new Map<HTMLElement, Entry>();

  /** `html`: the cells that are stored. */
  constructor(
    private readonly page: ScratchPage,
    html: string,
  ) {
    document.addEventListener("click", ({ target }) => this.clicked(target as Element));
    document.addEventListener("change", ({ target }) => this.changed(target as Element));
    document.addEventListener("submit", (event) => this.submitted(event));
    const flush = (): void => {
      for (const { store } of this.entries.values()) store.flush();
    };
    window.addEventListener("pagehide", flush);
    document.addEventListener("visibilitychange", () => document.hidden && flush());
    this.show(html);
  }

  /** Adds a cell below the row whose button was pressed. */
  pressed(button: HTMLElement): void {
    const row = button.closest<HTMLElement>("[data-after]");
    if (row) void this.add(row, button.dataset.action === "add-code" ? "code" : "text");
  }

  private show(html: string): void {
    for (const box of boxesIn(html)) {
      const row = this.row(box.dataset.below ?? "") ?? [...rows()].findLast((each) => !each.closest(".scratch"));
      if (row) lastBehind(row).after(box);
      this.adopt(box);
    }
    this.mark();
  }

  private adopt(box: HTMLElement): Entry {
    const name = box.dataset.scratchName ?? "";
    const root = box.querySelector<HTMLElement>("section.cell");
    const store = new ScratchStore(this.page.lesson, name, Number(box.dataset.version), this.page.drafts, box);
    const cell = root && this.page.add(root, store);
    store.attach(cell);
    const entry = { box, name, store, cell };
    this.entries.set(box, entry);
    return entry;
  }

  private clicked(target: Element): void {
    const button = target.closest<HTMLElement>("[data-action]");
    const action = button?.dataset.action;
    const entry = this.entryOf(target);
    if (action === "delete-all" && button) void this.removeAll(button);
    if (action === "move-up" || action === "move-down") {
      if (entry && button && button.getAttribute("aria-disabled") !== "true") void this.move(entry, action, button);
    } else if (action === "delete" && entry) void this.remove(entry);
    else if (action === "edit-text" && entry) editText(entry.box, true);
    else if (action === "cancel-text" && entry) editText(entry.box, false);
  }

  private changed(target: Element): void {
    const entry = this.entryOf(target);
    if (entry && target instanceof HTMLInputElement && target.dataset.action === "rename")
      void this.rename(entry, target);
  }

  private submitted(event: SubmitEvent): void {
    const form = event.target as HTMLFormElement;
    const entry = this.entryOf(form);
    if (!entry || !form.matches(".scratch-text-form")) return;
    event.preventDefault();
    void this.saveText(entry, need<HTMLTextAreaElement>(form, "textarea"));
  }

  private async add(row: HTMLElement, kind: string): Promise<void> {
    const made = await this.insert({ after: row.dataset.after ?? "", kind }, row);
    if (!made) return;
    announce(say("scratch.added"));
    if (made.cell) made.cell.edit();
    else editText(made.box, true);
  }

  /** Adds a cell at the server and on the page, behind the row. */
  private async insert(cell: NewScratchCell, row: HTMLElement): Promise<Entry | null> {
    const html = await tried(row, () => addScratchCell(this.page.lesson, cell));
    const [box] = boxesIn(html ?? "");
    if (!box) return null;
    (row.closest(".scratch") ?? row).after(box);
    const entry = this.adopt(box);
    this.mark();
    return entry;
  }

  private async rename({ store, cell, box }: Entry, field: HTMLInputElement): Promise<void> {
    const stored = await store.send({ title: field.value });
    if (!stored) return;
    field.value = stored.title;
    if (!cell) return;
    cell.title = stored.title || field.placeholder;
    cell.root.dataset.title = cell.title;
    need(box, `#cell-${cell.name}-title`).textContent = cell.title;
  }

  private async saveText({ box, store }: Entry, field: HTMLTextAreaElement): Promise<void> {
    const stored = await store.send({ source: field.value });
    if (!stored) return;
    const conflict = stored.source !== field.value;
    field.defaultValue = stored.source;
    if (conflict) {
      need(box, ".scratch-trouble").textContent = say("scratch.changedElsewhere");
      return;
    }
    // Sanitized by the server.
    need(box, "[data-words]").innerHTML = stored.html;
    editText(box, false);
    announce(say("scratch.saved"));
  }

  private async move({ box, name, cell }: Entry, where: "move-up" | "move-down", button: HTMLElement): Promise<void> {
    const all = [...rows()].filter((row) => !box.contains(row));
    const above = all.findLastIndex((row) => precedes(row, box));
    const target = all[where === "move-up" ? above - 1 : above + 1];
    if (!target) return;
    const back = box.previousElementSibling;
    place(box, target);
    this.mark();
    button.focus(); // it loses the focus while its cell changes places
    this.page.moved();
    const moved = await tried(box, async () => {
      await moveScratchCell(this.page.lesson, name, target.dataset.after ?? "");
      return true;
    });
    if (moved) announce(say(where === "move-up" ? "scratch.movedUp" : "scratch.movedDown", { cell: titleOf(box) }));
    else {
      back?.after(box);
      this.mark();
      this.page.moved();
    }
    cell?.root.scrollIntoView({ block: "nearest" });
  }

  private async remove(entry: Entry): Promise<void> {
    const { box, name } = entry;
    const kept = this.kept(entry);
    const gone = await tried(box, async () => {
      await deleteScratchCell(this.page.lesson, name);
      return true;
    });
    if (!gone) return;
    const words = say("scratch.deleted", { cell: titleOf(box) });
    const note = this.note(words, [kept]);
    box.replaceWith(note);
    this.drop(entry);
    this.told(note, words);
  }

  private async removeAll(button: HTMLElement): Promise<void> {
    const all = boxes().flatMap((box) => this.entries.get(box) ?? []);
    const kept = all.map((entry) => this.kept(entry));
    const tools = button.parentElement as HTMLElement;
    const gone = await tried(tools, async () => {
      await deleteScratchCells(this.page.lesson);
      return true;
    });
    if (!gone) return;
    const words = sayCount("scratch.deletedAll", all.length);
    const note = this.note(words, kept);
    tools.after(note);
    for (const entry of all) {
      entry.box.remove();
      this.drop(entry);
    }
    this.told(note, words);
  }

  /** A cell as it can be added again, where it is now. */
  private kept({ box, name, store }: Entry): NewScratchCell {
    const above = [...rows()].findLast((row) => !box.contains(row) && precedes(row, box));
    const title = box.querySelector<HTMLInputElement>("[data-action=rename]")?.value ?? "";
    return { after: above?.dataset.after ?? "", kind: box.dataset.kind ?? "code", source: store.source, title, name };
  }

  /** A cell is no longer on the page. */
  private drop({ box, cell, store }: Entry): void {
    if (cell) {
      void cell.stop();
      this.page.remove(cell);
    }
    this.entries.delete(box);
    store.close();
  }

  private note(words: string, kept: readonly NewScratchCell[]): HTMLElement {
    const undo = make<HTMLButtonElement>("button.again", { type: "button" }, say("cell.undo"));
    const note = make("p.scratch-gone", {}, make("span", {}, words), " ", undo);
    undo.addEventListener("click", () => void this.restore(note, kept));
    return note;
  }

  private told(note: HTMLElement, words: string): void {
    this.mark();
    need(note, "button").focus();
    announce(words);
  }

  /** Brings deleted cells back, where they were. Their last output shows again when the page is opened again. */
  private async restore(note: HTMLElement, kept: readonly NewScratchCell[]): Promise<void> {
    let last: Entry | null = null;
    for (const cell of kept) {
      if ([...this.entries.values()].some(({ name }) => name === cell.name)) continue; // an earlier try got this far
      const row = this.row(cell.after) ?? this.row("");
      last = row && (await this.insert(cell, row));
      if (!last) return;
    }
    note.remove();
    if (!last) return;
    if (last.cell) last.cell.edit();
    else need(last.box, "[data-action=edit-text]").focus();
    announce(
      kept.length > 1
        ? sayCount("scratch.restoredAll", kept.length)
        : say("scratch.restored", { cell: titleOf(last.box) }),
    );
  }

  /** The row behind the cell of that name. */
  private row(after: string): HTMLElement | null {
    return [...rows()].find((row) => row.dataset.after === after) ?? null;
  }

  private entryOf(target: Element): Entry | undefined {
    const box = target.closest<HTMLElement>(".scratch");
    return box ? this.entries.get(box) : undefined;
  }

  /** Says which cells cannot move further up or down, and offers to delete all if there are several. */
  private mark(): void {
    const all = [...rows()];
    const everything = document.querySelector<HTMLElement>("[data-action=delete-all]");
    if (everything) everything.hidden = this.entries.size < 2;
    for (const { box } of this.entries.values()) {
      const others = all.filter((row) => !box.contains(row));
      const above = others.findLastIndex((row) => precedes(row, box));
      need(box, "[data-action=move-up]").setAttribute("aria-disabled", String(above <= 0));
      need(box, "[data-action=move-down]").setAttribute("aria-disabled", String(above >= others.length - 1));
    }
  }
}

function boxes(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(".scratch")];
}

function boxesIn(html: string): HTMLElement[] {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return [...parsed.querySelectorAll<HTMLElement>(".scratch")].map((box) => document.adoptNode(box));
}

function rows(): NodeListOf<HTMLElement> {
  return document.querySelectorAll<HTMLElement>("[data-after]");
}

/** The row itself, or the last of the learner's cells that follow it directly. */
function lastBehind(row: HTMLElement): Element {
  let last: Element = row;
  while (last.nextElementSibling?.matches(".scratch")) last = last.nextElementSibling;
  return last;
}

function place(box: HTMLElement, row: HTMLElement): void {
  (row.closest(".scratch") ?? row).after(box);
}

function precedes(row: Element, box: Element): boolean {
  return Boolean(box.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_PRECEDING);
}

function titleOf(box: HTMLElement): string {
  const section = need(box, "section");
  return section.dataset.title ?? section.getAttribute("aria-label") ?? "";
}

function editText(box: HTMLElement, on: boolean): void {
  const form = need<HTMLFormElement>(box, ".scratch-text-form");
  if (!on) form.reset();
  form.hidden = !on;
  need(box, "[data-words]").hidden = on;
  if (on) need(form, "textarea").focus();
  else need(box, "[data-action=edit-text]").focus();
}

/** The result; null if the server refuses or cannot be reached, which is then said at this place. */
async function tried<T>(place: HTMLElement, request: () => Promise<T>): Promise<T | null> {
  try {
    return await request();
  } catch (error) {
    const words = failure(error);
    const trouble = place.closest(".scratch")?.querySelector(".scratch-trouble");
    if (trouble) trouble.textContent = words;
    else place.after(make("p.scratch-trouble", { role: "alert" }, words));
    return null;
  }
}
