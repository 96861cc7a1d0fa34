/**
 * What a learner changed in a cell, kept in this browser, apart for each account.
 *
 * A draft remembers which original it was made from: if the lesson changed since, the learner's text stays and the
 * page says so.
 */

import { draftKey } from "./account-storage";

export interface Draft {
  digest: string;
  code: string;
}

export interface Found {
  code: string;
  /** The draft was made from another version of the original. */
  outdated: boolean;
}

type StorageArea = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export class Drafts {
  constructor(
    private readonly lesson: string,
    private readonly storage: StorageArea | null,
    /** Whose drafts these are; null once the page is not theirs any more. */
    private readonly account: () => string | null,
  ) {}

  find(cell: string, original: string): Found | null {
    const draft = this.read(cell);
    if (!draft || draft.code === original) return null;
    return { code: draft.code, outdated: draft.digest !== digest(original) };
  }

  /** Keeps `code`, or forgets the draft where it equals the original. */
  keep(cell: string, original: string, code: string): void {
    const made = { digest: digest(original), code } satisfies Draft;
    const key = this.key(cell);
    if (key === null) return;
    try {
      if (code === original) this.storage?.removeItem(key);
      else this.storage?.setItem(key, JSON.stringify(made));
    } catch {
      // Storage is full or forbidden: the text stays in the editor for as long as the page is open.
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

/** A short fingerprint of a text (FNV-1a, two lanes of 32 bits): tells versions apart, protects nothing. */
export function digest(text: string): string {
  let [a, b] = [0x811c9dc5, 0x01000193];
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ (unit + i), 0x85ebca6b);
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}
