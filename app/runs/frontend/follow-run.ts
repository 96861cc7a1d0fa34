/**
 * Follows one run to its end, despite interruptions of the connection.
 *
 * The server's stream is read with fetch, from the last number seen. Whatever goes wrong (the server restarts, the
 * laptop sleeps, a proxy gives up, a number is missing), it waits briefly and continues from there.
 */

import { Backoff } from "../../web/frontend/backoff";
import { ResponseError, responseError, send } from "./api";
import type { Run, RunEvent, Waiting } from "./protocol";
import { SseParser } from "./sse";
import { TimeSlice } from "./time-slice";
import type { Transcript } from "./transcript";

export interface Watcher {
  /** The transcript has new events. */
  changed(): void;
  waiting(state: Waiting): void;
  /** The connection broke; called with false when it is back. */
  reconnecting(broken: boolean): void;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** The server sends a comment every 15 s, so a stream that is silent for longer than this is dead. */
const SILENCE_MS = 40_000;

/** Resolves when the run has finished. Rejects with ResponseError if the server does not know the run. */
export async function followRun(run: Run, transcript: Transcript, watcher: Watcher): Promise<void> {
  const backoff = new Backoff(FIRST_WAIT_MS, LONGEST_WAIT_MS);
  for (;;) {
    const before = transcript.lastSeq;
    try {
      await readOnce(run, transcript, watcher);
    } catch (error) {
      if (error instanceof ResponseError && error.status >= 400 && error.status < 500 && error.status !== 429)
        throw error;
    }
    if (transcript.finished) return;
    if (transcript.lastSeq > before) backoff.reset();
    watcher.reconnecting(true);
    await pause(backoff.next());
  }
}

async function readOnce(run: Run, transcript: Transcript, watcher: Watcher): Promise<void> {
  const abort = new AbortController();
  let timer = window.setTimeout(() => abort.abort(), SILENCE_MS);
  try {
    const response = await send(`${run.urls.stream}?after=${transcript.lastSeq}`, {
      signal: abort.signal,
      headers: { Accept: "text/event-stream" },
    });
    // 204: the run has ended and has no events after this number, but we never saw its end.
    if (response.status === 204) throw new ResponseError(410, "incomplete", "");
    if (!response.ok || !response.body) throw await responseError(response);
    watcher.reconnecting(false);
    const parser = new SseParser();
    const pace = new TimeSlice();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      window.clearTimeout(timer);
      timer = window.setTimeout(() => abort.abort(), SILENCE_MS);
      for (const message of parser.feed(value)) {
        if (message.event === "state") watcher.waiting(JSON.parse(message.data) as Waiting);
        else if (transcript.apply(JSON.parse(message.data) as RunEvent) === "gap") return;
        if (pace.due) await pace.pause();
      }
      watcher.changed();
      if (transcript.finished) return;
    }
  } finally {
    window.clearTimeout(timer);
    abort.abort();
  }
}

/** Waits, but not longer than until the network is back or the page becomes visible. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      window.clearTimeout(timer);
      window.removeEventListener("online", done);
      resolve();
    };
    const timer = window.setTimeout(done, ms);
    window.addEventListener("online", done);
  });
}
