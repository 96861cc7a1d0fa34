/**
 * A run's output as a list of items, built from its events: the same events give the same list, however they are split
 * and even if they repeat. Pure: does not use the document.
 */

import type { CheckEvent, Display, ErrorEvent, Finished, Metric, Notice, Progress, RunEvent } from "./protocol";
import { plain, type Row, TerminalRows } from "./terminal-rows";

export interface DisplayItem {
  kind: "display";
  seq: number;
  event: Display;
}
export interface ErrorItem {
  kind: "error";
  event: ErrorEvent;
}
export interface NoticeItem {
  kind: "notice";
  event: Notice;
  /** How often it was repeated in a row. */
  count: number;
}
export type Item = Row | DisplayItem | ErrorItem | NoticeItem;

/** The worker or replica that an item comes from; null for the cell itself. */
export function laneOf(item: Item): string | null {
  return item.kind === "row" ? item.lane : (item.event.lane ?? null);
}

/** That a failure still waits after the run. */
const STILL_WAITS = "no-steps-counted";

/** What Lockstep says in a lane of an error, right after it, or of a failure that still waits; the last, or null. */
export function hintInLane(items: Item[]): Notice | null {
  const failed = new Set<string>();
  let found: Notice | null = null;
  for (const item of items) {
    const lane = laneOf(item);
    if (lane === null) continue;
    if (item.kind === "notice" && (failed.has(lane) || item.event.code === STILL_WAITS)) found = item.event;
    if (item.kind === "error") failed.add(lane);
    else failed.delete(lane);
  }
  return found;
}

/** `applied`: new and in order. `known`: seen before. `gap`: an earlier event is missing. */
export type Reception = "applied" | "known" | "gap";

/** The maximum number of progress bars; more would not help. */
const MOST_BARS = 16;

export class Transcript {
  items: Item[] = [];
  /** The metrics, in order; clearing the output keeps them. */
  readonly metrics: Metric[] = [];
  /** The results of checks, in order; empty if nothing is judged. */
  readonly checks: CheckEvent[] = [];
  /** The latest progress of each lane and label, the most recently started last. */
  readonly progress = new Map<string, Progress>();
  /** By lane: the process that it waits for. */
  readonly waitsFor = new Map<string, string>();
  lastSeq = 0;
  started = false;
  /** The ID of the kernel that ran it, empty if unknown; null before the run has started. */
  kernel: string | null = null;
  /** Whether any item comes from a worker or replica. */
  inLanes = false;
  finished: Finished | null = null;
  /** Increases with each clearing, so that a view knows that its nodes are invalid. */
  clearings = 0;
  private readonly touched = new Set<Item>();
  /** By lane: each has its own cursor, so that lanes do not interrupt each other's lines. */
  private readonly rows = new Map<string | null, TerminalRows>();
  /** Lanes to clear before their next output. */
  private readonly clearNext = new Set<string | null>();
  private readonly byDisplayId = new Map<string, DisplayItem[]>();

  apply(event: RunEvent): Reception {
    if (event.seq <= this.lastSeq) return "known";
    if (event.seq > this.lastSeq + 1 && !tellsOfDeletion(event)) return "gap";
    this.lastSeq = event.seq;
    this.take(event);
    return "applied";
  }

  /** The items changed since the last call. */
  takeTouched(): Set<Item> {
    const touched = new Set(this.touched);
    this.touched.clear();
    return touched;
  }

  /** Everything as plain text, with placeholders for pictures. */
  text(): string {
    return this.lines().join("");
  }

  /** The same in pieces, because the whole may exceed the maximum length of a string. */
  lines(): string[] {
    return this.items.map((item) => `${inLane(laneOf(item), asText(item))}\n`);
  }

  /** A process waits from the notice about it until anything else comes from it, or the run ends. */
  private noteWait(event: RunEvent): void {
    if (event.kind === "finished") this.waitsFor.clear();
    if (!("lane" in event) || !event.lane) return;
    const waits = event.kind === "notice" && event.code.startsWith("waiting-for-");
    if (waits) this.waitsFor.set(event.lane, String(event.values.other));
    else this.waitsFor.delete(event.lane);
  }

  private take(event: RunEvent): void {
    this.noteWait(event);
    switch (event.kind) {
      case "started":
        this.started = true;
        this.kernel = event.kernel_id ?? "";
        break;
      case "text":
        this.clearIfDue(event.lane ?? null);
        this.textRows(event.lane ?? null).write(event.stream, event.text);
        break;
      case "display":
        this.display(event);
        break;
      case "clear":
        if (event.wait) this.clearNext.add(event.lane ?? null);
        else this.clear(event.lane ?? null);
        break;
      case "error":
        this.clearIfDue(event.lane ?? null);
        this.push({ kind: "error", event });
        break;
      case "metric":
        this.metrics.push(event);
        break;
      case "progress":
        this.advance(event);
        break;
      case "notice":
        this.notice(event);
        break;
      case "check":
        this.checks.push(event);
        break;
      case "finished":
        this.finished = event;
    }
  }

  private display(event: Display): void {
    const [lane, id] = [event.lane ?? null, displayKey(event)];
    if (event.update) {
      for (const item of this.byDisplayId.get(id) ?? []) {
        item.event = { ...event, result: item.event.result };
        item.seq = event.seq;
        this.touched.add(item);
      }
      return;
    }
    this.clearIfDue(lane);
    const item: DisplayItem = { kind: "display", seq: event.seq, event };
    if (event.display_id !== null) {
      this.byDisplayId.set(id, [...(this.byDisplayId.get(id) ?? []), item]);
    }
    this.push(item);
  }

  /** A notice that repeats in a lane becomes one line with a count. */
  private notice(event: Notice): void {
    const before = this.items.findLast((item) => laneOf(item) === (event.lane ?? null));
    if (before?.kind === "notice" && before.event.code === event.code && before.event.text === event.text) {
      before.count += 1;
      this.touched.add(before);
    } else {
      this.push({ kind: "notice", event, count: 1 });
    }
  }

  private advance(event: Progress): void {
    const key = JSON.stringify([event.lane ?? null, event.label]);
    const [oldest] = this.progress.keys();
    if (!this.progress.has(key) && this.progress.size >= MOST_BARS) this.progress.delete(oldest as string);
    this.progress.set(key, event);
  }

  private push(item: Item): void {
    this.add(item);
    this.rows.delete(laneOf(item));
  }

  private add(item: Item): void {
    this.items.push(item);
    if (laneOf(item) !== null) this.inLanes = true;
  }

  private textRows(lane: string | null): TerminalRows {
    let rows = this.rows.get(lane);
    if (!rows) {
      rows = new TerminalRows(
        (row) => this.add(row),
        (row) => this.touched.add(row),
        lane,
      );
      this.rows.set(lane, rows);
    }
    return rows;
  }

  private clearIfDue(lane: string | null): void {
    if (this.clearNext.has(lane)) this.clear(lane);
  }

  /** Removes what the code wrote in this lane; Lockstep's own notices and other lanes stay. */
  private clear(lane: string | null): void {
    this.items = this.items.filter((item) => item.kind === "notice" || laneOf(item) !== lane);
    this.clearings += 1;
    this.clearNext.delete(lane);
    this.rows.delete(lane);
    for (const [id, [item]] of this.byDisplayId) if (item && laneOf(item) === lane) this.byDisplayId.delete(id);
    this.touched.clear();
  }
}

/** When output is deleted to save space, a notice replaces it and leaves a gap in the numbers. */
function tellsOfDeletion(event: RunEvent): boolean {
  return event.kind === "notice" && (event.code === "output-expired" || event.code === "output-over-quota");
}

/** Processes may use the same display ID independently. */
function displayKey({ lane, display_id }: Display): string {
  return JSON.stringify([lane ?? null, display_id]);
}

/** Puts the name of the lane before each line, as `lockstep run` does. */
function inLane(lane: string | null, text: string): string {
  return lane === null ? text : text.replace(/^/gm, () => `[${lane}] `);
}

function asText(item: Item): string {
  if (item.kind === "row") return plain(item);
  if (item.kind === "notice") return `[Lockstep] ${item.event.text}${item.count > 1 ? ` (${item.count} times)` : ""}`;
  if (item.kind === "error")
    return item.event.frames
      .map((f) => f.text)
      .join("\n")
      .replace(/\x1b\[[0-9;:]*m/g, "");
  return displayText(item.event.data);
}

/** As `app.runs.display_text` for `lockstep run`: the source of Markdown and LaTeX, and no more than a word about a plot. */
function displayText(data: Record<string, unknown>): string {
  const plain = typeof data["text/plain"] === "string" ? data["text/plain"] : "";
  const plot = Object.keys(data).some((type) => /^application\/vnd\.(plotly|vegalite)\./.test(type));
  if (plot && /^(Figure\(|<VegaLite|$)/.test(plain)) return "(interactive plot)";
  const source = data["text/markdown"] ?? data["text/latex"];
  if (plain.startsWith("<IPython.") && typeof source === "string") return source;
  return plain || `[${Object.keys(data).join(", ")}]`;
}
