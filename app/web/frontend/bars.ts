/** Bars of progress: one for each lane and label, with what is done, of how much, and the time left in words. */

import "./seen-style";

import { make } from "./element";
import { laneColour } from "./lane-colour";
import type { Progress } from "./protocol";
import { figure, language, say, sayCount } from "./strings";

/** What Keras does under these names begins with a trace of the model, in which no step is done. */
const TRACED = ["fit", "evaluate", "predict"];

interface Bar {
  row: HTMLElement;
  native: HTMLProgressElement;
  words: HTMLElement;
}

export class Bars {
  readonly box = make("div.gauges", { hidden: true });
  private readonly bars = new Map<string, Bar>();

  /** `topology` decides the colours of lanes. */
  constructor(private readonly topology: string) {}

  /** Shows these and no others. What is complete gives way as soon as its lane goes on with something else. */
  show(progress: ReadonlyMap<string, Progress>): void {
    const shown = [...progress].filter(([, event]) => !complete(event) || isLast(event, progress));
    const keys = new Set(shown.map(([key]) => key));
    for (const [key, bar] of this.bars) {
      if (keys.has(key)) continue;
      bar.row.remove();
      this.bars.delete(key);
    }
    for (const [key, event] of shown) paint(this.bar(key, event), event);
    this.box.hidden = shown.length === 0;
  }

  private bar(key: string, event: Progress): Bar {
    const found = this.bars.get(key);
    if (found) return found;
    const name = [event.lane, event.label].filter(Boolean).join(" · ");
    const native = make<HTMLProgressElement>("progress", { "aria-label": name });
    const words = make("span.gauge-words");
    const row = make("div.gauge", {}, make("span.gauge-name", {}, name), native, words);
    if (event.lane) row.classList.add("of-lane", laneColour(event.lane, this.topology));
    this.box.append(row);
    const bar = { row, native, words };
    this.bars.set(key, bar);
    return bar;
  }
}

function paint({ native, words }: Bar, event: Progress): void {
  const known = event.total !== null && event.total > 0;
  if (known && !isTracing(event)) {
    native.max = event.total as number;
    native.value = Math.min(event.done, event.total as number);
  } else native.removeAttribute("value");
  const text = inWords(event);
  words.textContent = text;
  native.setAttribute("aria-valuetext", text);
}

export function inWords(event: Progress): string {
  if (isTracing(event)) return say("progress.tracing");
  const done = amount(event);
  const left = event.left_s === null || complete(event) ? "" : say("progress.left", { time: timeLeft(event.left_s) });
  return [done, left].filter(Boolean).join(" · ");
}

function isTracing({ done, label }: Progress): boolean {
  return done === 0 && TRACED.includes(label);
}

function amount({ done, total, unit }: Progress): string {
  if (total === null) return say("progress.soFar", { done: figure(done) });
  const values = { done: figure(done) };
  if (unit === "epoch") return sayCount("progress.epochs", total, values);
  return unit === "step" ? sayCount("progress.steps", total, values) : say("progress.items", { ...values, total: figure(total) });
}

/** Seconds as a round time in words of the page's language: "20 seconds", "3 minutes", "2 hours 10 minutes". */
export function timeLeft(seconds: number): string {
  if (seconds < 55) return quantity(seconds < 10 ? Math.max(1, Math.round(seconds)) : 5 * Math.round(seconds / 5), "second");
  const minutes = Math.max(1, Math.round(seconds / 60));
  if (minutes < 60) return quantity(minutes, "minute");
  const [hours, rest] = [Math.floor(minutes / 60), 10 * Math.floor((minutes % 60) / 10)];
  return rest ? `${quantity(hours, "hour")} ${quantity(rest, "minute")}` : quantity(hours, "hour");
}

function quantity(value: number, unit: "second" | "minute" | "hour"): string {
  return new Intl.NumberFormat(language(), { style: "unit", unit, unitDisplay: "long" }).format(value);
}

function complete({ done, total }: Progress): boolean {
  return total !== null && done >= total;
}

function isLast(event: Progress, progress: ReadonlyMap<string, Progress>): boolean {
  return [...progress.values()].every((other) => (other.lane ?? null) !== (event.lane ?? null) || other.seq <= event.seq);
}
