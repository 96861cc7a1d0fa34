/**
 * A run's output as a list of items, made from its events: the same events give the same list, in whatever pieces and
 * however often they arrive. Pure: no document here.
 */

import type { Display, ErrorEvent, Finished, Metric, Notice, Progress, RunEvent } from "./protocol";
import { plain, Rows, type Row } from "./rows";

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
}
export type Item = Row | DisplayItem | ErrorItem | NoticeItem;

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
  finished: Finished | null = null;
  /** Rises with each clearing, so that a view knows its nodes are void. */
  clearings = 0;
  private readonly touched = new Set<Item>();
  private rows: Rows | null = null;
  private clearNext = false;
  private readonly byDisplayId = new Map<string, DisplayItem[]>();

  apply(event: RunEvent): Reception {
    if (event.seq <= this.lastSeq) return "known";
    if (event.seq > this.lastSeq + 1) return "gap";
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
    return this.items.map((item) => `${asText(item)}\n`);
  }

  private take(event: RunEvent): void {
    switch (event.kind) {
      case "started":
        this.started = true;
        break;
      case "text":
        this.clearIfDue();
        this.textRows().write(event.stream, event.text);
        break;
      case "display":
        this.display(event);
        break;
      case "clear":
        if (event.wait) this.clearNext = true;
        else this.clear();
        break;
      case "error":
        this.clearIfDue();
        this.push({ kind: "error", event });
        break;
      case "metric":
        this.metrics.push(event);
        break;
      case "progress":
        this.advance(event);
        break;
      case "notice":
        this.push({ kind: "notice", event });
        break;
      case "finished":
        this.finished = event;
    }
  }

  private display(event: Display): void {
    if (event.update) {
      for (const item of this.byDisplayId.get(event.display_id ?? "") ?? []) {
        item.event = { ...event, result: item.event.result };
        item.seq = event.seq;
        this.touched.add(item);
      }
      return;
    }
    this.clearIfDue();
    const item: DisplayItem = { kind: "display", seq: event.seq, event };
    if (event.display_id !== null) {
      this.byDisplayId.set(event.display_id, [...(this.byDisplayId.get(event.display_id) ?? []), item]);
    }
    this.push(item);
  }

  private advance(event: Progress): void {
    const key = JSON.stringify([event.lane ?? null, event.label]);
    const [oldest] = this.progress.keys();
    if (!this.progress.has(key) && this.progress.size >= MOST_BARS) this.progress.delete(oldest as string);
    this.progress.set(key, event);
  }

  private push(item: Item): void {
    this.items.push(item);
    this.rows = null;
  }

  private textRows(): Rows {
    this.rows ??= new Rows(
      (row) => this.items.push(row),
      (row) => this.touched.add(row),
    );
    return this.rows;
  }

  private clearIfDue(): void {
    if (this.clearNext) this.clear();
  }

  /** What Lockstep itself said stays; what the code wrote goes. */
  private clear(): void {
    this.items = this.items.filter((item) => item.kind === "notice");
    this.clearings += 1;
    this.clearNext = false;
    this.rows = null;
    this.byDisplayId.clear();
    this.touched.clear();
  }
}

function asText(item: Item): string {
  if (item.kind === "row") return plain(item);
  if (item.kind === "notice") return `[Lockstep] ${item.event.text}`;
  if (item.kind === "error") return item.event.frames.map((f) => f.text).join("\n").replace(/\x1b\[[0-9;:]*m/g, "");
  const text = item.event.data["text/plain"];
  return typeof text === "string" ? text : `[${Object.keys(item.event.data).join(", ")}]`;
}
