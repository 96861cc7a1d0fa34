/**
 * What a run shows beside its output: the chart of its numbers and its bars of progress, between output and status line.
 *
 * Both come in chunks of their own, with the first event that needs them.
 */

import type { Chart } from "./chart";
import { make } from "./element";
import type { ProgressBars } from "./progress-bars";
import type { Transcript } from "./transcript";

export class Visualizations {
  private readonly place = make("div.visualizations");
  private transcript: Transcript | null = null;
  private chart: Chart | null = null;
  private bars: ProgressBars | null = null;
  private topology = "";
  private loading = false;
  private over = false;

  constructor(
    status: HTMLElement,
    private readonly cell: string,
    private readonly name: string,
  ) {
    status.before(this.place);
  }

  /** Shows this transcript from now on; `topology` is that of its run. */
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
    void this.load();
    this.chart?.changed();
    this.bars?.show(this.over ? new Map() : progress);
  }

  /** The run is over. `restored` if it was when the page came: then nothing is said. */
  ended(restored = false): void {
    this.over = true;
    this.bars?.show(new Map());
    this.chart?.ended(restored);
  }

  /** While the next run's numbers are on their way, the room of the last one's is kept. */
  keepHeight(): void {
    const height = this.place.offsetHeight;
    if (height > 0) this.place.style.minHeight = `${height}px`;
  }

  letHeightGo(): void {
    this.place.style.minHeight = "";
  }

  /** The last numbers, for those who listen. */
  words(): string {
    return this.chart?.lastWords() ?? "";
  }

  /** Fetches what is needed for the first time. A chunk that does not come is asked for again with the next event. */
  private async load(): Promise<void> {
    if (this.loading) return;
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
