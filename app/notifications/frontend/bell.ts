/**
 * The live count of the notification bell: one tab of the browser holds the stream and passes the count to the others.
 *
 * The bell's text comes from the server, in the page's language; this module decides when to request it again.
 */

import { announce } from "../../web/frontend/announce";
import { Backoff } from "../../web/frontend/backoff";

const NAME = "lockstep:bell";
const FIRST_WAIT_MS = 5_000;
const LONGEST_WAIT_MS = 5 * 60_000;
const LOOK_EVERY_MS = 60_000;

let last = -1;
let begun = false;

/** Call this whenever the bell may have been loaded or changed. */
export function setUpBell(): void {
  const link = document.querySelector<HTMLElement>("#bell .bell-link");
  if (!link) return;
  const unread = Number(link.dataset.unread);
  if (last >= 0 && unread > last) announce(link.querySelector(".visually-hidden")?.textContent ?? "");
  last = unread;
  if (!begun) begin();
  begun = true;
}

function begin(): void {
  // Without locks, as on a plain http URL, tabs cannot agree on one stream: each polls now and then.
  if (!("locks" in navigator)) {
    window.setInterval(() => document.hidden || ask(), LOOK_EVERY_MS);
    return;
  }
  let leave = join();
  // A page in the back-forward cache must hold no lock and no stream, and hear no other tab: Chromium drops it there at the
  // first message. When it is shown again, it starts over.
  window.addEventListener("pagehide", () => leave.abort());
  window.addEventListener("pageshow", ({ persisted }) => {
    if (!persisted) return;
    ask();
    leave = join();
  });
}

/** Takes part in the count of all tabs, until the result is aborted. */
function join(): AbortController {
  const leave = new AbortController();
  const others = new BroadcastChannel(NAME);
  others.addEventListener("message", ({ data }) => hear(Number(data)));
  leave.signal.addEventListener("abort", () => others.close());
  void lead(others, leave.signal).catch(() => undefined);
  return leave;
}

/** Waits until no other tab holds the stream, then holds it as long as this page is open. */
async function lead(others: BroadcastChannel, signal: AbortSignal): Promise<void> {
  await navigator.locks.request(NAME, { signal }, async () => {
    const backoff = new Backoff(FIRST_WAIT_MS, LONGEST_WAIT_MS);
    while (!signal.aborted) {
      const end = await listen(signal, (unread) => {
        backoff.reset();
        others.postMessage(unread);
        hear(unread);
      });
      if (end === "over" || signal.aborted) return;
      await pause(backoff.next(), signal);
    }
  });
}

/** Follows the stream until it ends for good or is closed. The browser reconnects after short interruptions. */
function listen(signal: AbortSignal, heard: (unread: number) => void): Promise<"over" | "closed"> {
  return new Promise((resolve) => {
    const stream = new EventSource("/notifications/stream");
    const end = (how: "over" | "closed"): void => {
      stream.close();
      resolve(how);
    };
    stream.addEventListener("unread", ({ data }) => heard(Number(data)));
    stream.addEventListener("over", () => end("over"));
    stream.addEventListener("error", () => stream.readyState === EventSource.CLOSED && end("closed"));
    signal.addEventListener("abort", () => end("closed"));
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      resolve();
    });
  });
}

function hear(unread: number): void {
  const shown = document.querySelector<HTMLElement>("#bell .bell-link")?.dataset;
  if (Number(shown?.unread) !== unread) ask();
}

/** Makes the bell request its current text. */
function ask(): void {
  document.body.dispatchEvent(new CustomEvent(NAME));
}
