/**
 * Drafts: a learner's changes to the code of cells, stored in this browser, separately for each account.
 *
 * A draft remembers which original it was made from: if the lesson has changed since, the learner's text stays and the
 * page says so.
 */

import { draftKey } from "../../accounts/frontend/account-storage";

export interface Draft {
  digest: string;
  code: string;
}

export interface Found {
  code: string;
  /** Whether the draft was made from another version of the original. */
  outdated: boolean;
}

type StorageArea = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export class Drafts {
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
    const made = { digest: digest(original), code } satisfies Draft;
    const key = this.key(cell);
    if (key === null) return;
    try {
      if (code === original) this.storage?.removeItem(key);
      else this.storage?.setItem(key, JSON.stringify(made));
    } catch {
      // Storage is full or denied: the text stays in the editor while the page is open.
    }
  }

  private read(cell: string): Draft | null {
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
