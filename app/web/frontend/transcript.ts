/**
 * A run's output as a list of items, made from its events: the same events give the same list, in whatever pieces and
 * however often they arrive. Pure: no document here.
 */

import type { Display, ErrorEvent, Finished, Metric, Notice, Progress, RunEvent } from "./protocol";
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
  /** How often it came, one directly after the other. */
  count: number;
}
export type Item = Row | DisplayItem | ErrorItem | NoticeItem;

/** The worker or replica that an item comes from; null for the cell itself. */
export function laneOf(item: Item): string | null {
  return item.kind === "row" ? item.lane : (item.event.lane ?? null);
}

/** `applied`: new and in order. `known`: seen before. `gap`: something before it is missing. */
export type Reception = "applied" | "known" | "gap";

/** Bars of progress that are kept; more at once are no help. */
const MOST_BARS = 16;

export class Transcript {
  items: Item[] = [];
  /** The numbers of the training, in order; a clearing of the output leaves them. */
  readonly metrics: Metric[] = [];
  /** The latest of each lane and label, the latest begun last. */
  readonly progress = new Map<string, Progress>();
  lastSeq = 0;
  started = false;
  /** The name of the kernel that ran it, empty where it is not known; null before it started. */
  kernel: string | null = null;
  /** Whether any item came from a worker or a replica. */
  inLanes = false;
  finished: Finished | null = null;
  /** Rises with each clearing, so that a view knows its nodes are void. */
  clearings = 0;
  private readonly touched = new Set<Item>();
  /** By lane: each has a cursor of its own, so that lanes that write by turns do not cut each other's lines. */
  private readonly rows = new Map<string | null, TerminalRows>();
  /** Lanes that are to be cleared with their next output. */
  private readonly clearNext = new Set<string | null>();
  private readonly byDisplayId = new Map<string, DisplayItem[]>();

  apply(event: RunEvent): Reception {
    if (event.seq <= this.lastSeq) return "known";
    if (event.seq > this.lastSeq + 1 && !tellsOfDeletion(event)) return "gap";
    this.lastSeq = event.seq;
    this.take(event);
    return "applied";
  }

  /** The items written to since the last call. */
  takeTouched(): Set<Item> {
    const touched = new Set(this.touched);
    this.touched.clear();
    return touched;
  }

  /** All of it as plain text, pictures named by their kind. */
  text(): string {
    return this.lines().join("");
  }

  /** The same in pieces: together they may be longer than one string can be. */
  lines(): string[] {
    return this.items.map((item) => `${inLane(laneOf(item), asText(item))}\n`);
  }

  private take(event: RunEvent): void {
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

  /** What is said again and again in a lane is one line with a number. */
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

  /** What the code wrote in this lane goes; what Lockstep itself said stays, and so do other lanes. */
  private clear(lane: string | null): void {
    this.items = this.items.filter((item) => item.kind === "notice" || laneOf(item) !== lane);
    this.clearings += 1;
    this.clearNext.delete(lane);
    this.rows.delete(lane);
    for (const [id, [item]] of this.byDisplayId) if (item && laneOf(item) === lane) this.byDisplayId.delete(id);
    this.touched.clear();
  }
}

/** Output that was deleted to save space leaves a notice in its place, and a gap in the numbers. */
function tellsOfDeletion(event: RunEvent): boolean {
  return event.kind === "notice" && (event.code === "output-expired" || event.code === "output-over-quota");
}

/** Processes name their displays without knowing of each other. */
function displayKey({ lane, display_id }: Display): string {
  return JSON.stringify([lane ?? null, display_id]);
}

/** Each line with the name of its lane in front, as `lockstep run` prints it. */
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
  const text = item.event.data["text/plain"];
  return typeof text === "string" ? text : `[${Object.keys(item.event.data).join(", ")}]`;
}
