/**
 * A press, from the moment that the mouse button or a finger is down until the click has happened. If a link moved in
 * between, the browser would send no click, and the press would do nothing.
 */

/** The click of a tap follows the release. */
const CLICK_MS = 50;
/** A longer press selects text or drags something. */
const LONGEST_MS = 2_000;

export class Press {
  private down: Promise<void> | null = null;
  private end: () => void = () => undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  begin(): void {
    this.endAfter(LONGEST_MS);
    this.down ??= new Promise((resolve) => {
      this.end = () => {
        this.down = null;
        resolve();
      };
    });
  }

  release(): void {
    if (this.down) this.endAfter(CLICK_MS);
  }

  /** Resolves when nothing is pressed. */
  async ended(): Promise<void> {
    await this.down;
  }

  private endAfter(delayMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.end(), delayMs);
  }
}
