/**
 * Lets nothing move under a learner's finger: a fragment that arrives while the mouse button or a finger is down waits
 * until it is up. If a link moved in between, the browser would send no click, and the press would do nothing.
 */

/** The click of a tap follows the release. */
const CLICK_MS = 50;
/** Who presses for longer selects text or drags. */
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

  private endAfter(delayMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.end(), delayMs);
  }

  /** A `fetch` whose text arrives when nothing is pressed. */
  holding(request: typeof fetch): typeof fetch {
    return async (input, init) => {
      const response = await request(input, init);
      const read = response.text.bind(response);
      response.text = async () => {
        const text = await read();
        await this.down;
        return text;
      };
      return response;
    };
  }
}

/** Holds back htmx's fragments. */
export function setUpPress(): void {
  const press = new Press();
  addEventListener("pointerdown", () => press.begin(), { capture: true });
  for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => press.release(), { capture: true });
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = (event as CustomEvent<{ ctx: { fetch?: typeof fetch } }>).detail;
    ctx.fetch = press.holding(ctx.fetch ?? ((input, init) => fetch(input, init)));
  });
}
