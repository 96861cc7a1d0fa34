/**
 * Keeps a new visitor one visitor. The first request that stores something creates the visitor, and its response sets
 * the cookie. Another one sent meanwhile would create a second visitor, and the work of one of them would be lost.
 */

/** Long enough for a session to start; after that, the next request is sent anyway. */
const PATIENCE_MS = 5_000;

/** A `fetch` whose first request that stores something is answered before the next one is sent. */
export function inTurn(request: typeof fetch, known: () => boolean, patienceMs = PATIENCE_MS): typeof fetch {
  let first: Promise<unknown> | null = null;
  return async (input, init) => {
    const reads = ["GET", "HEAD"].includes((init?.method ?? "GET").toUpperCase());
    if (reads || known()) return request(input, init);
    if (first) {
      await Promise.race([first, new Promise((proceed) => setTimeout(proceed, patienceMs))]);
      return request(input, init);
    }
    const response = request(input, init);
    first = response.catch(() => {
      first = null; // nothing arrived: the next request is the first
    });
    return response;
  };
}

/** Use this instead of `fetch`. Once the page's header names the learner, nothing waits. */
export const fetchInTurn = inTurn(
  (input, init) => fetch(input, init),
  () => Boolean(document.querySelector<HTMLElement>("[data-who]")?.dataset.who),
);

/** Sends htmx's requests in turn, too. */
export function setUpVisitorRequests(): void {
  document.addEventListener("htmx:config:request", (event) => {
    (event as CustomEvent<{ ctx: { fetch?: typeof fetch } }>).detail.ctx.fetch = fetchInTurn;
  });
}
