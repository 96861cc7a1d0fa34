/** Requests to the server, and what can go wrong with them. */

import type { Machine, Run, RunEvent } from "./protocol";
import { language, say } from "./strings";

/** The server answered, and said no. `message` is in the page's language. */
export class ResponseError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** No answer at all: the network or the server is away. */
export class NetworkError extends Error {}

/** `machine` is the learner's choice; without one the cell's own is meant. */
export async function submit(lesson: string, cell: string, code: string, machine: Machine | null): Promise<Run> {
  const body = JSON.stringify({ lesson, cell, code, ...machine });
  return (await json("/runs", { method: "POST", body })) as Run;
}

export async function latestRuns(lesson: string): Promise<Run[]> {
  return ((await json(`/runs?lesson=${encodeURIComponent(lesson)}`)) as { runs: Run[] }).runs;
}

export async function eventsAfter(run: Run, after: number): Promise<{ events: RunEvent[]; finished: boolean }> {
  return (await json(`${run.urls.events}?after=${after}`)) as { events: RunEvent[]; finished: boolean };
}

export async function stop(run: Run): Promise<void> {
  await json(run.urls.stop, { method: "POST" });
}

/** Asks for a session ahead of the first run; nobody waits for the answer. */
export function warmUp(lesson: string, { topology, keras }: Machine): void {
  const asked = new URLSearchParams({ lesson, topology, keras: String(keras) });
  void send(`/${language()}/session?${asked}`, { method: "POST" }).catch(() => undefined);
}

/** A request with our headers. Throws NetworkError when nothing answers. */
export async function send(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("X-Lockstep-Lang", language());
  if (init.body) headers.set("Content-Type", "application/json");
  try {
    return await fetch(url, { ...init, headers, credentials: "same-origin" });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new NetworkError(say("error.unreachable"), { cause });
  }
}

/** The ResponseError that a bad answer amounts to. */
export async function responseError(response: Response): Promise<ResponseError> {
  const body = (await response.json().catch(() => null)) as { error?: { code?: string; message?: string } } | null;
  const message = body?.error?.message ?? say("error.status", { status: response.status });
  return new ResponseError(response.status, body?.error?.code ?? "", message);
}

async function json(url: string, init: RequestInit = {}): Promise<unknown> {
  const response = await send(url, init);
  if (!response.ok) throw await responseError(response);
  return response.status === 204 || !response.headers.get("content-type")?.includes("json") ? null : response.json();
}
