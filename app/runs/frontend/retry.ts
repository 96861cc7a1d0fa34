/** Retries while the server is unavailable. */

import { Backoff } from "../../web/frontend/backoff";
import { NetworkError, ResponseError } from "./api";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
const HAND_IN_WAIT_MS = 2_000;
/** A learner looks at a hand-in, so its waits grow little. */
const HAND_IN_GROWTH = 3;

/** The result of `attempt`, retried until the server responds; null if it responds with an error. */
export async function retryUntilAnswered<T>(attempt: () => Promise<T>): Promise<T | null> {
  const backoff = new Backoff(FIRST_WAIT_MS, LONGEST_WAIT_MS);
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const away = error instanceof NetworkError || (error instanceof ResponseError && error.status >= 500);
      if (!away) {
        if (error instanceof ResponseError) return null;
        throw error;
      }
      await new Promise((resolve) => window.setTimeout(resolve, backoff.next()));
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
  const backoff = new Backoff(waitMs, HAND_IN_GROWTH * waitMs);
  while (!givenUp.aborted) {
    try {
      return await attempt();
    } catch (error) {
      if (givenUp.aborted) break;
      if (!(error instanceof NetworkError || (error instanceof ResponseError && error.status === 503))) throw error;
      away(error);
    }
    await pause(backoff.next(), givenUp);
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
