/**
 * Drafts: a learner's changes to the code of cells, stored in this browser, separately for each account.
 *
 * A draft remembers which original it was made from: if the lesson has changed since, the learner's text stays and the
 * page says so.
 */

import { draftKey, type StorageArea as WholeStorage } from "../../accounts/frontend/account-storage";

export interface Draft {
  digest: string;
  code: string;
  /** The version at the server that this browser has seen last; see `draft-sync.ts`. */
  version?: number;
  /** Whether that version has this code. */
  sent?: boolean;
}

export interface Found {
  code: string;
  /** Whether the draft was made from another version of the original. */
  outdated: boolean;
}

type StorageArea = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export class Drafts {
  /** Called with the cell whenever its code may have changed. */
  kept: (cell: string) => void = () => undefined;

  constructor(
    private readonly lesson: string,
    private readonly storage: StorageArea | null,
    /** The account that owns the drafts; null once the page belongs to somebody else. */
    private readonly account: () => string | null,
  ) {}

  find(cell: string, original: string): Found | null {
    const draft = this.read(cell);
    if (!draft || draft.code === original) return null;
    return { code: draft.code, outdated: draft.digest !== digest(original) };
  }

  /** Saves `code`, or deletes the draft if it equals the original. */
  keep(cell: string, original: string, code: string): void {
    this.write(cell, code === original ? null : { digest: digest(original), code });
    this.kept(cell);
  }

  /** Notes which version at the server this browser has seen, and whether it has the draft's code. */
  mark(cell: string, version: number, sent: boolean): void {
    const draft = this.read(cell);
    if (draft) this.write(cell, { ...draft, version, sent });
  }

  private write(cell: string, draft: Draft | null): void {
    const key = this.key(cell);
    if (key === null) return;
    try {
      if (draft) this.storage?.setItem(key, JSON.stringify(draft));
      else this.storage?.removeItem(key);
    } catch {
      // Storage is full or denied: the text stays in the editor while the page is open.
    }
  }

  /** The draft as it is stored; null if there is none. */
  read(cell: string): Draft | null {
    const key = this.key(cell);
    if (key === null) return null;
    try {
      const draft = JSON.parse(this.storage?.getItem(key) ?? "null") as Partial<Draft> | null;
      return typeof draft?.code === "string" && typeof draft.digest === "string" ? (draft as Draft) : null;
    } catch {
      return null;
    }
  }

  private key(cell: string): string | null {
    const account = this.account();
    return account === null ? null : draftKey(account, this.lesson, cell);
  }
}

/**
 * Moves the drafts of a lesson that was renamed, then those of its renamed cells (by former name, which is
 * `lesson#cell` for a cell that has moved here from another lesson). A draft under the present name stays.
 */
export function moveDrafts(
  storage: WholeStorage,
  account: string,
  lesson: string,
  formerLessons: string[],
  formerCells: ReadonlyMap<string, string>,
): void {
  try {
    for (const former of formerLessons) {
      const prefix = draftKey(account, former, "");
      const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i) ?? "");
      for (const key of keys.filter((key) => key.startsWith(prefix))) {
        move(storage, key, draftKey(account, lesson, key.slice(prefix.length)));
      }
    }
    for (const [former, cell] of formerCells) {
      const [name = "", slug] = former.split("#").reverse();
      const there = slug === undefined ? lesson : lesson.replace(/[^/]*$/, slug);
      move(storage, draftKey(account, there, name), draftKey(account, lesson, cell));
    }
  } catch {
    // Storage is full or denied.
  }
}

function move(storage: StorageArea, from: string, to: string): void {
  const draft = storage.getItem(from);
  if (draft === null || storage.getItem(to) !== null) return;
  storage.setItem(to, draft);
  storage.removeItem(from);
}

/** A short fingerprint of a text (FNV-1a, two lanes of 32 bits), to tell versions apart. Not cryptographic. */
export function digest(text: string): string {
  let [a, b] = [0x811c9dc5, 0x01000193];
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ (unit + i), 0x85ebca6b);
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}
