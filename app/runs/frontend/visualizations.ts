/**
 * What a run shows next to its output: the chart of its metrics and its progress bars, between output and status line.
 *
 * Both are separate chunks, loaded with the first event that needs them.
 */

import { make } from "../../web/frontend/element";
import type { Chart } from "./chart";
import type { ProgressBars } from "./progress-bars";
import type { Transcript } from "./transcript";

export class Visualizations {
  private readonly place = make("div.visualizations");
  private transcript: Transcript | null = null;
  private chart: Chart | null = null;
  private bars: ProgressBars | null = null;
  private topology = "";
  /** Resolves once what has been needed so far is there. */
  loaded = Promise.resolve();
  private loading = false;
  private over = false;

  constructor(
    status: HTMLElement,
    private readonly cell: string,
    private readonly name: string,
  ) {
    status.before(this.place);
  }

  /** Shows this transcript from now on; `topology` is its run's machine. */
  show(transcript: Transcript, topology: string): void {
    this.transcript = transcript;
    this.topology = topology;
    this.over = false;
    this.chart?.box.remove();
    this.chart = null;
    this.bars?.box.remove();
    this.bars = null;
    this.changed();
  }

  changed(): void {
    if (!this.transcript) return;
    const { metrics, progress } = this.transcript;
    if (!metrics.length && (!progress.size || this.over)) return;
    if (!this.loading) this.loaded = this.load();
    this.chart?.changed();
    this.bars?.show(this.over ? new Map() : progress);
  }

  /** Called when the run has ended. `restored`: it ended before the page was loaded, so nothing is announced. */
  ended(restored = false): void {
    this.over = true;
    this.bars?.show(new Map());
    this.chart?.ended(restored);
  }

  /** Keeps the height of the last run's visualizations until the next ones arrive. */
  keepHeight(): void {
    const height = this.place.offsetHeight;
    if (height > 0) this.place.style.minHeight = `${height}px`;
  }

  letHeightGo(): void {
    this.place.style.minHeight = "";
  }

  /** The last metrics in words, for screen readers. */
  words(): string {
    return this.chart?.lastWords() ?? "";
  }

  /** Loads what is needed for the first time. If a chunk cannot be loaded, the next event tries again. */
  private async load(): Promise<void> {
    this.loading = true;
    const [chart, bars] = await Promise.all([
      this.transcript?.metrics.length && !this.chart ? import("./chart").catch(() => null) : null,
      this.transcript?.progress.size && !this.bars && !this.over ? import("./progress-bars").catch(() => null) : null,
    ]);
    this.loading = false;
    if (chart && !this.chart && this.transcript?.metrics.length) {
      this.chart = new chart.Chart(this.transcript.metrics, this.topology, this.cell, this.name);
      this.place.prepend(this.chart.box);
      if (this.over) this.chart.ended(true);
    }
    if (bars && !this.bars) {
      this.bars = new bars.ProgressBars(this.topology);
      this.place.append(this.bars.box);
      if (!this.over && this.transcript) this.bars.show(this.transcript.progress);
    }
  }
}
