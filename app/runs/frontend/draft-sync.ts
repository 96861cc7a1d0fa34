/**
 * Shares the drafts of a lesson among the browsers of an account, a chunk of its own.
 *
 * The server numbers the versions of each draft, and a change replaces only the version that its browser has seen. Where
 * another browser has a newer draft, the page takes it only if the learner has changed nothing here and the page has
 * just been opened; otherwise the newer draft is offered above the code, and both are kept until the learner chooses.
 */

import { announce } from "../../web/frontend/announce";
import { make, need } from "../../web/frontend/element";
import { language, say } from "../../web/frontend/strings";
import { NetworkError, ResponseError, type SharedDraft, shareDraft, sharedDrafts } from "./api";
import type { Cell } from "./cell";
import { type Drafts, digest } from "./drafts";

/** After the last key, so that a draft is not sent with every letter. */
const PAUSE_MS = 1_500;
/** A page that is shown again asks for news, but not more often than this. */
const ASK_EVERY_MS = 5_000;

/** A draft in this browser, and what it knows of the one at the server. */
export interface OwnDraft {
  code: string;
  /** 0 if none was seen. */
  version: number;
  /** Whether the code differs from that of `version`, or the learner wrote it before the server had any. */
  changed: boolean;
}

export type Step = "nothing" | "send" | "take" | "offer";

/** What to do, if the server has `theirs`. `fresh`: the page was just opened. Pure. */
export function nextStep(own: OwnDraft, theirs: { code: string; version: number } | null, fresh: boolean): Step {
  if (!theirs) return own.changed ? "send" : "nothing";
  if (theirs.code === own.code) return "nothing";
  if (theirs.version === own.version) return "send";
  return own.changed || !fresh ? "offer" : "take";
}

/** The draft of one cell. */
class CellDraft {
  version = 0;
  /** The code of `version`; null if unknown, because the learner changed it before it was ever sent. */
  known: string | null;
  pending = false;
  private offered: HTMLElement | null = null;

  constructor(
    readonly cell: Cell,
    private readonly drafts: Drafts,
    private readonly send: () => void,
  ) {
    const stored = drafts.read(cell.name);
    this.version = stored?.version ?? 0;
    this.known = stored && !stored.sent ? null : cell.currentCode;
  }

  get own(): OwnDraft {
    return { code: this.cell.currentCode, version: this.version, changed: this.cell.currentCode !== this.known };
  }

  /** Another draft is offered, and nothing is sent until the learner has chosen. */
  get undecided(): boolean {
    return this.offered !== null;
  }

  /** Follows the step for the draft at the server. */
  meet(theirs: SharedDraft | null, fresh: boolean): void {
    const code = theirs ? (theirs.code ?? this.cell.original) : "";
    const step = nextStep(this.own, theirs && { code, version: theirs.version }, fresh);
    if (step === "send") this.pending = true;
    if (!theirs || step === "send") return;
    if (step === "offer") {
      this.offer(theirs, code);
      return;
    }
    if (step === "take") this.cell.adoptDraft(code, theirs.original_digest !== digest(this.cell.original));
    this.note(theirs.version, code);
  }

  /** The server has this version, with this code. */
  note(version: number, code: string): void {
    this.version = version;
    this.known = code;
    this.withdraw();
    this.mark();
  }

  /** Stores what this page knows beside the draft: another tab may know more, and its draft may be another one. */
  mark(): void {
    this.drafts.mark(this.cell.name, this.version, !this.own.changed);
  }

  private offer(theirs: SharedDraft, code: string): void {
    if (this.offered?.dataset.version === String(theirs.version)) return;
    const format = new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" });
    const words = say("draft.newer", { time: format.format(new Date(theirs.updated_at)) });
    const use = make("button.again", { type: "button" }, say("draft.use"));
    const keep = make("button.again", { type: "button" }, say("draft.keep"));
    use.addEventListener("click", () => {
      this.cell.replaceCode(code);
      this.note(theirs.version, code);
    });
    keep.addEventListener("click", () => {
      this.note(theirs.version, code);
      need(this.cell.root, "[data-action=run]").focus();
      this.send();
    });
    this.withdraw();
    this.offered = make(
      "p.newer-draft",
      { "data-version": String(theirs.version) },
      make("span", {}, words),
      " ",
      use,
      " ",
      keep,
    );
    need(this.cell.root, ".outdated").before(this.offered);
    announce(`${this.cell.title}: ${words}`);
  }

  private withdraw(): void {
    this.offered?.remove();
    this.offered = null;
  }
}

export class DraftSync {
  private readonly cells: CellDraft[];
  private readonly owner: string | null;
  private askedAt = -Infinity;
  private waiting = 0;
  private sending: Promise<void> = Promise.resolve();

  constructor(
    private readonly lesson: string,
    cells: Cell[],
    drafts: Drafts,
    private readonly account: () => string | null,
  ) {
    this.owner = account();
    for (const cell of cells) cell.keep(); // what was typed just before this script was there is a change, too
    this.cells = cells.map((cell) => new CellDraft(cell, drafts, () => this.soon(cell.name, 0)));
    drafts.kept = (name) => this.soon(name, PAUSE_MS);
  }

  start(): void {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.flush() : void this.ask(false)));
    window.addEventListener("pagehide", () => this.flush());
    window.addEventListener("online", () => void this.ask(false));
    void this.ask(true);
  }

  /** Asks the server for its drafts, and sends those that it does not have. */
  private async ask(fresh: boolean): Promise<void> {
    const now = performance.now();
    if (now - this.askedAt < ASK_EVERY_MS || !this.belongs) return;
    this.askedAt = now;
    const found = await tried(() => sharedDrafts(this.lesson));
    if (!found || !this.belongs) return;
    for (const each of this.cells) each.meet(found.find((draft) => draft.cell === each.cell.name) ?? null, fresh);
    this.sendAll(false);
  }

  private soon(name: string, pauseMs: number): void {
    const draft = this.cells.find((each) => each.cell.name === name);
    draft?.mark();
    if (!draft?.own.changed) return;
    draft.pending = true;
    window.clearTimeout(this.waiting);
    this.waiting = window.setTimeout(() => this.sendAll(false), pauseMs);
  }

  /** Sends what is pending while the page can still do so. */
  private flush(): void {
    for (const { cell } of this.cells) cell.keep();
    this.sendAll(true);
  }

  private sendAll(last: boolean): void {
    window.clearTimeout(this.waiting);
    this.sending = this.sending.then(async () => {
      for (const draft of this.cells) if (draft.pending && !draft.undecided) await this.send(draft, last);
    });
  }

  private async send(draft: CellDraft, last: boolean): Promise<void> {
    if (!this.belongs) return;
    draft.pending = false;
    const { name, original } = draft.cell;
    const { code, version, changed } = draft.own;
    if (!changed) return;
    const change = {
      lesson: this.lesson,
      cell: name,
      code: code === original ? null : code,
      original_digest: digest(original),
      seen_version: version,
    };
    const stored = await tried(() => shareDraft(change, last));
    if (!stored)
      draft.pending = true; // sent with the next change, or when the page is shown again
    else if ((stored.code ?? original) === code) draft.note(stored.version, code);
    else draft.meet(stored, false);
  }

  private get belongs(): boolean {
    return this.owner !== null && this.account() === this.owner;
  }
}

/** The answer, or null if the server did not give one: drafts stay in this browser and are sent later. */
async function tried<T>(request: () => Promise<T>): Promise<T | null> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof ResponseError || error instanceof NetworkError) return null;
    throw error;
  }
}
