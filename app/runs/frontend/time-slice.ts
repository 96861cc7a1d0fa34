/** Splits long work into short slices, so that the browser can respond to the user in between. */

/** The longest work without a pause. Below 50 ms, nobody notices a delay; a slice finishes its last item. */
const LONGEST_MS = 16;

export class TimeSlice {
  private since = performance.now();

  /** Whether it is time for a pause. */
  get due(): boolean {
    return performance.now() - this.since > LONGEST_MS;
  }

  /** Resolves when the browser has processed pending events. */
  async pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      const { port1, port2 } = new MessageChannel(); // in a hidden page, a timer would wait for a second
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    });
    this.since = performance.now();
  }
}
