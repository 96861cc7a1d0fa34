/** Requests to the server, and their errors. */

import { language, say } from "../../web/frontend/strings";
import { fetchInTurn } from "../../web/frontend/visitor-requests";
import type { Machine, Run, RunEvent } from "./protocol";

/** The server responded with an error. `message` is in the page's language. */
export class ResponseError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** No response: the network or the server is down. */
export class NetworkError extends Error {}

/** Submits code. `machine` is the learner's choice; null means the cell's default. */
export async function submit(lesson: string, cell: string, code: string, machine: Machine | null): Promise<Run> {
  const body = JSON.stringify({ lesson, cell, code, ...machine });
  return (await json("/runs", { method: "POST", body })) as Run;
}

/** Submits code to be judged. `panel` is the URL of the exercise's panel; the same `key` is never judged twice. */
export async function submitExercise(panel: string, code: string, key: string): Promise<Run> {
  return (await json(`${panel}/submissions`, { method: "POST", body: JSON.stringify({ code, key }) })) as Run;
}

export async function runOf(id: string): Promise<Run> {
  return (await json(`/runs/${id}`)) as Run;
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

/** Requests a session before the first run; the response does not matter. */
export function warmUp(lesson: string, { topology, keras }: Machine): void {
  const asked = new URLSearchParams({ lesson, topology, keras: String(keras) });
  void send(`/${language()}/session?${asked}`, { method: "POST" }).catch(() => undefined);
}

/** A request with our headers. Throws NetworkError if there is no response. */
export async function send(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("X-Lockstep-Lang", language());
  if (init.body) headers.set("Content-Type", "application/json");
  try {
    return await fetchInTurn(url, { ...init, headers, credentials: "same-origin" });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new NetworkError(say("error.unreachable"), { cause });
  }
}

/** Converts an error response to a ResponseError. */
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
