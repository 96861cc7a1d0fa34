/** Much work in small pieces: between two of them the browser may answer who touches the page. */

/** Work without a pause. Below 50 ms nobody feels a delay; what a piece begins, it also ends. */
const LONGEST_MS = 16;

export class TimeSlice {
  private since = performance.now();

  /** Whether it is time for a pause. */
  get due(): boolean {
    return performance.now() - this.since > LONGEST_MS;
  }

  /** Resolves when the browser has done what waited meanwhile. */
  async pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      const { port1, port2 } = new MessageChannel(); // a timer would wait for a second where the page is hidden
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    });
    this.since = performance.now();
  }
}
