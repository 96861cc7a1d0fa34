/** Tries again while the server is away. */

import { Declined, Unreachable } from "./api";

const WAITS_MS = [500, 1_000, 2_000, 4_000];

/** What `attempt` gives, tried until the server answers; null if it says no. */
export async function untilAnswered<T>(attempt: () => Promise<T>): Promise<T | null> {
  for (let i = 0; ; i++) {
    try {
      return await attempt();
    } catch (error) {
      const away = error instanceof Unreachable || (error instanceof Declined && error.status >= 500);
      if (!away) {
        if (error instanceof Declined) return null;
        throw error;
      }
      await new Promise((resolve) => window.setTimeout(resolve, WAITS_MS[Math.min(i, WAITS_MS.length - 1)]));
    }
  }
}
