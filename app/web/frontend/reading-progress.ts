/**
 * Reading marks: which lessons were opened in this browser, how far, and where the reader left.
 *
 * They live in localStorage, one key a lesson, so that two tabs with two lessons never write over each other; two tabs
 * with the same lesson merge what they find before they write. The server hears of a mark as soon as it changes, and of
 * all of them when it knows this reader for the first time, or another one.
 */

import { availableStorage, type StorageArea } from "./account-storage";

/** What the server takes (`POST /progress/marks`); moments in milliseconds since 1970. */
export interface ReadingProgress {
  lesson: string;
  opened_at: number;
  last_seen_at: number;
  end_reached_at: number | null;
  /** The id of the heading or cell that was last in view. */
  anchor: string;
}

/** What a browser may have kept: before the first version, two of the fields had other names. */
type StoredProgress = Partial<ReadingProgress> & { seen_at?: unknown; place?: unknown };

const PREFIX = "lockstep:mark:";
const TOLD = "lockstep:marks-told";
/** After this long, having a lesson open again is news. */
const A_WHILE_MS = 10 * 60_000;

/** Two marks of one lesson as one: the earliest moments, and the anchor of the later one. */
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

/** The marks of this browser. Where storage is forbidden they last as long as the page. */
export class ReadingProgressStore {
  private readonly own = new Map<string, ReadingProgress>();

  constructor(private readonly storage: StorageArea | null = availableStorage()) {}

  find(lesson: string): ReadingProgress | null {
    const [kept, own] = [this.read(PREFIX + lesson), this.own.get(lesson)];
    return kept && own ? merged(kept, own) : (kept ?? own ?? null);
  }

  /** Adds to what is known of a lesson: whether that says anything new to the server. */
  add(mark: ReadingProgress): boolean {
    const before = this.find(mark.lesson);
    const after = before ? merged(before, mark) : mark;
    this.own.set(mark.lesson, after);
    try {
      this.storage?.setItem(PREFIX + mark.lesson, JSON.stringify(after));
    } catch {
      // Storage is full or forbidden: the page knows, and the server may.
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
      // Forbidden: those of this page it is.
    }
    return [...lessons].map((lesson) => this.find(lesson)).filter((mark) => mark !== null);
  }

  /** Whether `who` has heard of all marks of this browser. */
  told(who: string): boolean {
    try {
      return this.storage?.getItem(TOLD) === who;
    } catch {
      return false;
    }
  }

  keepTold(who: string): void {
    try {
      this.storage?.setItem(TOLD, who);
    } catch {
      // They are told again with the next page, which changes nothing.
    }
  }

  /** Nobody is known here any more. What a learner's server was told is theirs, not of whoever comes next. */
  leave(): void {
    try {
      if (!this.storage?.getItem(TOLD)) return;
      for (const { lesson } of this.all()) this.storage.removeItem(PREFIX + lesson);
      this.storage.removeItem(TOLD);
      this.own.clear();
    } catch {
      // Forbidden: nothing was kept.
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
