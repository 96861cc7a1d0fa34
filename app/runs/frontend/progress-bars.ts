/** Progress bars: one per lane and label, with what is done, the total, and the remaining time in words. */

import "./visualization-styles";

import { make } from "../../web/frontend/element";
import { laneColor } from "./lane-color";
import { complete, isTracing, progressText } from "./progress-text";
import type { Progress } from "./protocol";

interface Bar {
  row: HTMLElement;
  native: HTMLProgressElement;
  words: HTMLElement;
}

export class ProgressBars {
  readonly box = make("div.progress-bars", { hidden: true });
  private readonly bars = new Map<string, Bar>();

  /** `topology` decides the colors of lanes. */
  constructor(private readonly topology: string) {}

  /** Shows only these bars. A complete one is removed when its lane continues with something else. */
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
    const words = make("span.progress-bar-words");
    const row = make("div.progress-bar", {}, make("span.progress-bar-name", {}, name), native, words);
    if (event.lane) row.classList.add("of-lane", laneColor(event.lane, this.topology));
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
  const text = progressText(event);
  words.textContent = text;
  native.setAttribute("aria-valuetext", text);
}

function isLast(event: Progress, progress: ReadonlyMap<string, Progress>): boolean {
  return [...progress.values()].every(
    (other) => (other.lane ?? null) !== (event.lane ?? null) || other.seq <= event.seq,
  );
}
