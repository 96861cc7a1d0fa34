/**
 * Stores the code of a cell that the learner has added: at the server a moment after the last key, and in this browser
 * until the server has it. A change replaces only the version that this browser has seen: if another one has changed the
 * cell, its version is offered above the code, and both are kept until the learner chooses.
 */

import { announce } from "../../web/frontend/announce";
import { make, need } from "../../web/frontend/element";
import { language, say } from "../../web/frontend/strings";
import { changeScratchCell, NetworkError, ResponseError, type StoredScratchCell } from "./api";
import type { Cell, CodeStore } from "./cell";
import type { Drafts, Found } from "./drafts";

/** After the last key, so that the code is not sent with every letter. */
const PAUSE_MS = 1_000;
const RETRY_MS = 10_000;

export interface Change {
  source?: string;
  title?: string;
}

export class ScratchStore implements CodeStore {
  private cell: Cell | null = null;
  private waiting = 0;
  private sending: Promise<unknown> = Promise.resolve();
  private offered: HTMLElement | null = null;
  private closed = false;

  constructor(
    private readonly lesson: string,
    private readonly name: string,
    private version: number,
    private readonly drafts: Drafts,
    private readonly box: HTMLElement,
  ) {}

  /** The code or the text as it is now. */
  get source(): string {
    return this.cell?.currentCode ?? need<HTMLTextAreaElement>(this.box, "textarea").value;
  }

  /** What this browser could not send when the page was last open. */
  find(cell: string, original: string): Found | null {
    const found = this.drafts.find(cell, original);
    this.version = (found && this.drafts.read(cell)?.version) || this.version;
    return found;
  }

  keep(cell: string, original: string, code: string): void {
    this.drafts.keep(cell, original, code);
    this.drafts.mark(cell, this.version, false);
    this.soon(PAUSE_MS);
  }

  attach(cell: Cell | null): void {
    this.cell = cell;
    if (cell && cell.currentCode !== cell.original) this.soon(0);
  }

  /** Sends what is pending while the page can still do so. */
  flush(): void {
    this.cell?.keep();
    if (this.waiting) void this.save(true);
  }

  close(): void {
    this.closed = true;
    window.clearTimeout(this.waiting);
    if (this.cell) this.drafts.keep(this.name, "", "");
  }

  /** Sends a change after those before it. Returns what is then stored; null if it was refused, which is then shown. */
  send(change: Change, last = false): Promise<StoredScratchCell | null> {
    const sent = this.sending.then(async () => {
      try {
        const stored = await changeScratchCell(this.lesson, this.name, { ...change, seen_version: this.version }, last);
        // Otherwise another browser's source is stored, which this one has not shown.
        if (stored.source === change.source) this.version = stored.version;
        this.complain("");
        return stored;
      } catch (error) {
        this.complain(failure(error));
        if (error instanceof NetworkError || (error instanceof ResponseError && error.status >= 500))
          this.soon(RETRY_MS);
        return null;
      }
    });
    this.sending = sent;
    return sent;
  }

  private soon(pauseMs: number): void {
    if (this.closed || !this.cell) return;
    window.clearTimeout(this.waiting);
    this.waiting = window.setTimeout(() => void this.save(false), pauseMs);
  }

  private async save(last: boolean): Promise<void> {
    window.clearTimeout(this.waiting);
    this.waiting = 0;
    const { cell } = this;
    if (!cell || this.closed || this.offered || cell.currentCode === cell.original) return;
    const code = cell.currentCode;
    const stored = await this.send({ source: code }, last);
    if (stored?.source === code) this.accept(cell, code);
    else if (stored) this.offer(cell, stored);
  }

  private accept(cell: Cell, code: string): void {
    cell.stored(code);
    this.drafts.keep(this.name, code, cell.currentCode);
    if (cell.currentCode !== code) this.soon(PAUSE_MS);
  }

  private offer(cell: Cell, stored: StoredScratchCell): void {
    const format = new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" });
    const words = say("draft.newer", { time: format.format(new Date(stored.updated_at)) });
    const use = make("button.again", { type: "button" }, say("draft.use"));
    const keep = make("button.again", { type: "button" }, say("draft.keep"));
    const settle = (): void => {
      this.offered?.remove();
      this.offered = null;
      this.version = stored.version;
      cell.stored(stored.source);
    };
    use.addEventListener("click", () => {
      settle();
      cell.replaceCode(stored.source);
    });
    keep.addEventListener("click", () => {
      settle();
      need(cell.root, "[data-action=run]").focus();
      void this.save(false);
    });
    this.offered = make("p.newer-draft", {}, make("span", {}, words), " ", use, " ", keep);
    need(cell.root, ".outdated").before(this.offered);
    announce(`${cell.title}: ${words}`);
  }

  private complain(words: string): void {
    need(this.box, ".scratch-trouble").textContent = words;
  }
}

/** What to tell the learner about a request that failed. */
export function failure(error: unknown): string {
  if (error instanceof ResponseError || error instanceof NetworkError) return error.message;
  throw error;
}
