/**
 * Reading progress: which lessons were opened in this browser, how far they were read, and where the reader left off.
 *
 * It is stored in localStorage, one key per lesson, so that tabs with different lessons do not overwrite each other;
 * tabs with the same lesson merge before they write. Changes are sent to the server at once, and everything is sent
 * when the server first knows this learner.
 */

import { availableStorage, type StorageArea } from "../../accounts/frontend/account-storage";

/** An entry as sent to the server (`POST /progress/reading`); times are milliseconds since 1970. */
export interface ReadingProgress {
  lesson: string;
  opened_at: number;
  last_seen_at: number;
  end_reached_at: number | null;
  /** The ID of the heading or cell that was last in view. */
  anchor: string;
}

/** An entry as stored: before the first version, two of its fields had other names. */
type StoredProgress = Partial<ReadingProgress> & { seen_at?: unknown; place?: unknown };

const PREFIX = "lockstep:mark:";
const SYNCED = "lockstep:marks-told";
/** After this time, opening a lesson again is worth reporting. */
const A_WHILE_MS = 10 * 60_000;

/** Merges two entries of a lesson: the earliest times, and the anchor of the later one. */
export function merged(a: ReadingProgress, b: ReadingProgress): ReadingProgress {
  const ends = [a.end_reached_at, b.end_reached_at].filter((moment) => moment !== null);
  const later = b.last_seen_at >= a.last_seen_at ? b : a;
  return {
    lesson: a.lesson,
    opened_at: Math.min(a.opened_at, b.opened_at),
    last_seen_at: later.last_seen_at,
    end_reached_at: ends.length ? Math.min(...ends) : null,
    anchor: later.anchor || a.anchor || b.anchor,
  };
}

/** The reading progress in this browser. If storage is denied, it lasts as long as the page. */
export class ReadingProgressStore {
  private readonly own = new Map<string, ReadingProgress>();

  constructor(private readonly storage: StorageArea | null = availableStorage()) {}

  find(lesson: string): ReadingProgress | null {
    const [kept, own] = [this.read(PREFIX + lesson), this.own.get(lesson)];
    return kept && own ? merged(kept, own) : (kept ?? own ?? null);
  }

  /** Adds to the progress of a lesson. Returns whether that is news for the server. */
  add(reading: ReadingProgress): boolean {
    const before = this.find(reading.lesson);
    const after = before ? merged(before, reading) : reading;
    this.own.set(reading.lesson, after);
    try {
      this.storage?.setItem(PREFIX + reading.lesson, JSON.stringify(after));
    } catch {
      // Storage is full or denied: the page keeps it, and the server may have it.
    }
    if (!before || after.last_seen_at - before.last_seen_at > A_WHILE_MS) return true;
    return before.anchor !== after.anchor || before.end_reached_at !== after.end_reached_at;
  }

  all(): ReadingProgress[] {
    const lessons = new Set(this.own.keys());
    try {
      for (let i = 0; i < (this.storage?.length ?? 0); i++) {
        const key = this.storage?.key(i);
        if (key?.startsWith(PREFIX)) lessons.add(key.slice(PREFIX.length));
      }
    } catch {
      // Storage is denied: only the entries of this page are known.
    }
    return [...lessons].map((lesson) => this.find(lesson)).filter((reading) => reading !== null);
  }

  /** Whether the server has all entries of this browser for `who`. */
  isSynced(who: string): boolean {
    try {
      return this.storage?.getItem(SYNCED) === who;
    } catch {
      return false;
    }
  }

  markSynced(who: string): void {
    try {
      this.storage?.setItem(SYNCED, who);
    } catch {
      // They are sent again from the next page, which does no harm.
    }
  }

  /** Deletes progress after a sign-out: what was sent for a learner is theirs, not the next person's. */
  leave(): void {
    try {
      if (!this.storage?.getItem(SYNCED)) return;
      for (const { lesson } of this.all()) this.storage.removeItem(PREFIX + lesson);
      this.storage.removeItem(SYNCED);
      this.own.clear();
    } catch {
      // Storage is denied: nothing was stored.
    }
  }

  private read(key: string): ReadingProgress | null {
    try {
      const found = JSON.parse(this.storage?.getItem(key) ?? "null") as StoredProgress | null;
      const last_seen_at = found?.last_seen_at ?? found?.seen_at;
      if (typeof found?.opened_at !== "number" || typeof last_seen_at !== "number") return null;
      const end = typeof found.end_reached_at === "number" ? found.end_reached_at : null;
      const place = found.anchor ?? found.place;
      return {
        lesson: key.slice(PREFIX.length),
        opened_at: found.opened_at,
        last_seen_at,
        end_reached_at: end,
        anchor: typeof place === "string" ? place : "",
      };
    } catch {
      return null;
    }
  }
}
