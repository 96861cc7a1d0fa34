/** Retries while the server is unavailable. */

import { NetworkError, ResponseError } from "./api";

const WAITS_MS = [500, 1_000, 2_000, 4_000];
const HAND_IN_WAIT_MS = 2_000;

/** The result of `attempt`, retried until the server responds; null if it responds with an error. */
export async function retryUntilAnswered<T>(attempt: () => Promise<T>): Promise<T | null> {
  for (let i = 0; ; i++) {
    try {
      return await attempt();
    } catch (error) {
      const away = error instanceof NetworkError || (error instanceof ResponseError && error.status >= 500);
      if (!away) {
        if (error instanceof ResponseError) return null;
        throw error;
      }
      await new Promise((resolve) => window.setTimeout(resolve, WAITS_MS[Math.min(i, WAITS_MS.length - 1)]));
    }
  }
}

/** The result of `attempt`, retried until it is accepted; null once `givenUp`. `away` is called after each failure. */
export async function retryUntilAccepted<T>(
  attempt: () => Promise<T>,
  away: (error: ResponseError | NetworkError) => void,
  givenUp: AbortSignal,
  waitMs = HAND_IN_WAIT_MS,
): Promise<T | null> {
  while (!givenUp.aborted) {
    try {
      return await attempt();
    } catch (error) {
      if (givenUp.aborted) break;
      if (!(error instanceof NetworkError || (error instanceof ResponseError && error.status === 503))) throw error;
      away(error);
    }
    await pause(waitMs, givenUp);
  }
  return null;
}

function pause(ms: number, givenUp: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      givenUp.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    givenUp.addEventListener("abort", done);
  });
}
