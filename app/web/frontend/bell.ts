/**
 * The bell counts live: one tab of the browser holds the stream and passes the number on to the others.
 *
 * What the bell says comes from the server, in the page's language: here is only decided when it is asked for again.
 */

import { announce } from "./announce";

const NAME = "lockstep:bell";
const FIRST_WAIT_MS = 5_000;
const LONGEST_WAIT_MS = 5 * 60_000;
const LOOK_EVERY_MS = 60_000;

let last = -1;
let begun = false;

/** Called whenever the bell may have come or may say something else. */
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
  // Without locks, as on a plain http address, tabs cannot agree on one stream: each looks from time to time.
  if (!("locks" in navigator)) {
    window.setInterval(() => document.hidden || ask(), LOOK_EVERY_MS);
    return;
  }
  const others = new BroadcastChannel(NAME);
  others.addEventListener("message", ({ data }) => hear(Number(data)));
  let leave = new AbortController();
  const join = (): void => void lead(others, leave.signal).catch(() => undefined);
  // A page that waits in the browser's memory holds nothing; one that comes back from there begins anew.
  window.addEventListener("pagehide", () => leave.abort());
  window.addEventListener("pageshow", ({ persisted }) => {
    if (!persisted) return;
    leave = new AbortController();
    ask();
    join();
  });
  join();
}

/** Waits until no other tab has the stream, then has it as long as this page is open. */
async function lead(others: BroadcastChannel, signal: AbortSignal): Promise<void> {
  await navigator.locks.request(NAME, { signal }, async () => {
    for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      const end = await listen(signal, (unread) => {
        wait = FIRST_WAIT_MS;
        others.postMessage(unread);
        hear(unread);
      });
      if (end === "over") return;
      await pause(wait, signal);
    }
  });
}

/** Follows the stream until it is over for good, or closed. Short breaks the browser mends by itself. */
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

/** Has the bell ask the server what it says now. */
function ask(): void {
  document.body.dispatchEvent(new CustomEvent(NAME));
}
