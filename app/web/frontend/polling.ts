/** Parts of a page that poll (`hx-trigger="every 2s"`) do it less often while the server is unavailable. */

import { Backoff } from "./backoff";

const FIRST_WAIT_MS = 4_000;
const LONGEST_WAIT_MS = 60_000;

/** Which elements have to wait, by their id. */
export class PollingPauses {
  private readonly paused = new Map<string, { backoff: Backoff; untilMs: number }>();

  constructor(private readonly random: () => number = Math.random) {}

  /** Whether the element has to skip a poll. */
  skips(id: string, nowMs: number): boolean {
    return nowMs < (this.paused.get(id)?.untilMs ?? 0);
  }

  /** Notes the result of any request of the element. 0: there was no response. */
  note(id: string, status: number, nowMs: number): void {
    if (status > 0 && status < 500 && status !== 429) {
      this.paused.delete(id);
      return;
    }
    const pause = this.paused.get(id) ?? {
      backoff: new Backoff(FIRST_WAIT_MS, LONGEST_WAIT_MS, this.random),
      untilMs: 0,
    };
    pause.untilMs = nowMs + pause.backoff.next();
    this.paused.set(id, pause);
  }
}

interface Polling {
  ctx: { sourceElement: Element; sourceEvent?: Event; response?: { status: number } };
}

export function setUpPolling(): void {
  const pauses = new PollingPauses();
  const noted = (event: Event): void => {
    const { ctx } = (event as CustomEvent<Polling>).detail;
    if (ctx) pauses.note(ctx.sourceElement.id, ctx.response?.status ?? 0, performance.now());
  };
  document.addEventListener("htmx:config:request", (event) => {
    const { sourceElement, sourceEvent } = (event as CustomEvent<Polling>).detail.ctx;
    if (sourceEvent?.type === "every" && pauses.skips(sourceElement.id, performance.now())) event.preventDefault();
  });
  document.addEventListener("htmx:after:request", noted);
  document.addEventListener("htmx:error", noted);
}
