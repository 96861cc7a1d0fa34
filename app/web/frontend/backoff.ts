/** Waits between attempts while the server is unavailable: the longer it is, the fewer, and never all tabs at once. */

/** Each wait is up to twice as long as the one before, at most `longestMs`, and shortened at random by up to half. */
export class Backoff {
  private failures = 0;

  constructor(
    private readonly firstMs: number,
    private readonly longestMs: number,
    private readonly random: () => number = Math.random,
  ) {}

  /** The wait after another failure. */
  next(): number {
    const full = Math.min(this.firstMs * 2 ** this.failures, this.longestMs);
    if (full < this.longestMs) this.failures++;
    return full * (1 - this.random() / 2);
  }

  /** Called after a success. */
  reset(): void {
    this.failures = 0;
  }
}
