/**
 * All runs of the page, in the order of submission.
 *
 * A session executes one run after the other, so only the first unfinished run of each session is followed; the others
 * wait here without a connection. At most two sessions are followed at once.
 */

import { eventsAfter, latestRuns, ResponseError } from "./api";
import { followRun } from "./follow-run";
import type { Run, Waiting } from "./protocol";
import { TimeSlice } from "./time-slice";
import { Transcript } from "./transcript";

export interface TrackedRun {
  run: Run;
  transcript: Transcript;
  owner: RunListener;
  /** When it started, on this page's clock (ms), if that was before the page knew of it. */
  startedAt: number | null;
  /** True from the server's first message about it until it has finished. */
  followed: boolean;
  over: boolean;
}

/** A cell, as the run manager uses it. */
export interface RunListener {
  /** This is now the run to show. `restored`: it existed when the page was loaded. */
  begins(entry: TrackedRun, restored: boolean): void;
  changed(entry: TrackedRun): void;
  waits(entry: TrackedRun, waiting: Waiting): void;
  reconnecting(entry: TrackedRun, broken: boolean): void;
  finished(entry: TrackedRun, restored: boolean): void;
  /** The server does not know the run anymore. */
  vanished(entry: TrackedRun): void;
}

const MOST_FOLLOWED = 2;

export class RunManager {
  private entries: TrackedRun[] = [];
  /** The ids of the runs that this page has followed or will follow, and the cells that they belong to. */
  private readonly known = new Set<string>();
  private readonly used = new Set<RunListener>();
  private turns: Promise<void> = Promise.resolve();
  private readonly listeners: (() => void)[] = [];

  /** Calls `listener` whenever a run starts or ends. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** The owner's unfinished runs, in order of submission. */
  unfinished(owner: RunListener): TrackedRun[] {
    return this.entries.filter((entry) => entry.owner === owner && !entry.over);
  }

  anyUnfinished(): boolean {
    return this.entries.some((entry) => !entry.over);
  }

  /** The active run that was followed last. */
  running(): Run | undefined {
    return this.entries.findLast((entry) => entry.followed && !entry.over)?.run;
  }

  add(run: Run, owner: RunListener): TrackedRun {
    const startedAt = run.running_ms === null ? null : performance.now() - run.running_ms;
    const entry = { run, transcript: new Transcript(), owner, startedAt, followed: false, over: false };
    this.entries.push(entry);
    this.known.add(run.id);
    this.used.add(owner);
    this.pump();
    return entry;
  }

  /** Submits runs one at a time: concurrent requests could change the order of cells. */
  inTurn(handIn: () => Promise<void>): Promise<void> {
    const turn = this.turns.then(handIn);
    this.turns = turn.catch(() => undefined);
    return turn;
  }

  /** The number of runs of the same session before this one. */
  ahead(entry: TrackedRun): number {
    const before = this.entries.slice(0, this.entries.indexOf(entry));
    return before.filter((other) => !other.over && session(other.run) === session(entry.run)).length;
  }

  /**
   * Restores runs from before this page was loaded: unfinished ones, and the output of finished ones in cells that
   * nobody has run meanwhile.
   */
  async restore(lesson: string, ownerOf: (cell: string) => RunListener | undefined): Promise<void> {
    const runs = await latestRuns(lesson);
    const finished: TrackedRun[] = [];
    for (const run of runs) {
      const owner = ownerOf(run.cell);
      if (!owner || this.known.has(run.id)) continue;
      if (run.state !== "finished") this.add(run, owner);
      else finished.push({ run, transcript: new Transcript(), owner, startedAt: null, followed: true, over: true });
    }
    for (const entry of finished) {
      if (!this.used.has(entry.owner)) await this.replay(entry);
    }
  }

  private async replay(entry: TrackedRun): Promise<void> {
    entry.owner.begins(entry, true);
    const pace = new TimeSlice();
    for (;;) {
      const before = entry.transcript.lastSeq;
      const { events } = await eventsAfter(entry.run, before);
      for (const event of events) {
        entry.transcript.apply(event);
        if (pace.due) await pace.pause();
      }
      entry.owner.changed(entry);
      if (entry.transcript.finished || entry.transcript.lastSeq === before) break;
    }
    entry.owner.finished(entry, true);
  }

  private pump(): void {
    const busy = new Set<string>();
    for (const entry of this.entries) {
      if (entry.over || busy.has(session(entry.run))) continue;
      if (busy.size >= MOST_FOLLOWED) break;
      busy.add(session(entry.run));
      if (!entry.followed) void this.follow(entry);
    }
    for (const entry of this.entries) {
      if (!entry.over && !entry.followed) entry.owner.waits(entry, queued(this.ahead(entry)));
    }
    for (const listener of this.listeners) listener();
  }

  private async follow(entry: TrackedRun): Promise<void> {
    entry.followed = true;
    const { owner } = entry;
    owner.begins(entry, false);
    try {
      await followRun(entry.run, entry.transcript, {
        changed: () => owner.changed(entry),
        waiting: (waiting) => owner.waits(entry, waiting),
        reconnecting: (broken) => owner.reconnecting(entry, broken),
      });
      entry.over = true;
      owner.finished(entry, false);
    } catch (error) {
      entry.over = true;
      owner.vanished(entry);
      if (!(error instanceof ResponseError)) throw error;
    } finally {
      this.entries = this.entries.filter((other) => !other.over);
      this.pump();
    }
  }
}

function session(run: Run): string {
  return `${run.topology} ${run.keras}`;
}

function queued(ahead: number): Waiting {
  return { state: "queued", position: null, ahead };
}
