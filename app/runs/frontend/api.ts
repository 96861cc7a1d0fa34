/** Requests to the server, and their errors. */

import { language, say } from "../../web/frontend/strings";
import { fetchInTurn } from "../../web/frontend/visitor-requests";
import type { Machine, Run, RunEvent } from "./protocol";

const MOST_KEPT_ALIVE_BYTES = 60_000;

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

/** The HTML of a display of Markdown or LaTeX, which the server has sanitized. */
export async function displayText(url: string): Promise<string> {
  const response = await send(url);
  if (!response.ok) throw await responseError(response);
  return response.text();
}

/** What the usual mistakes are, by the code of their notice, in the page's language. */
export async function errorHints(): Promise<Record<string, string>> {
  return (await json(`/${language()}/error-hints`)) as Record<string, string>;
}

/** What the editor says, in the page's language. */
export async function editorTexts(): Promise<Record<string, string>> {
  return (await json(`/${language()}/editor-texts`)) as Record<string, string>;
}

export async function stop(run: Run): Promise<void> {
  await json(run.urls.stop, { method: "POST" });
}

/** Requests a session before the first run; the response does not matter. */
export function warmUp(lesson: string, { topology, keras }: Machine): void {
  const asked = new URLSearchParams({ lesson, topology, keras: String(keras) });
  void send(`/${language()}/session?${asked}`, { method: "POST" }).catch(() => undefined);
}

/** A draft at the server. Without code, the cell was reset. */
export interface SharedDraft {
  cell: string;
  code: string | null;
  original_digest: string;
  version: number;
  updated_at: string;
}

export async function sharedDrafts(lesson: string): Promise<SharedDraft[]> {
  return ((await json(`/code-drafts?lesson=${encodeURIComponent(lesson)}`)) as { drafts: SharedDraft[] }).drafts;
}

/** A change to a draft: `seen_version` is the version at the server that it replaces. */
export interface DraftChange {
  lesson: string;
  cell: string;
  code: string | null;
  original_digest: string;
  seen_version: number;
}

/** Sends a change. Returns the draft that is then at the server: another one if that was changed meanwhile. */
export async function shareDraft(change: DraftChange, last: boolean): Promise<SharedDraft> {
  const response = await send("/code-drafts", put(change, last));
  if (!response.ok) throw await responseError(response);
  return (await response.json()) as SharedDraft;
}

/** A cell that the learner has added, as it is stored. */
export interface StoredScratchCell {
  source: string;
  title: string;
  version: number;
  updated_at: string;
  /** Of a text: its HTML. */
  html: string;
}

export interface NewScratchCell {
  after: string;
  kind: string;
  source?: string;
  title?: string;
  /** The name of a deleted cell that comes back. */
  name?: string;
}

/** The cells that the learner has added to a page, as HTML. */
export async function scratchCells(lesson: string): Promise<string> {
  return await html(scratchUrl(lesson));
}

export async function addScratchCell(lesson: string, cell: NewScratchCell): Promise<string> {
  return await html(scratchUrl(lesson), { method: "POST", body: JSON.stringify(cell) });
}

/** Sends a change to the version `seen_version`. Returns the cell that is then stored. */
export async function changeScratchCell(
  lesson: string,
  name: string,
  change: { source?: string; title?: string; seen_version: number },
  last = false,
): Promise<StoredScratchCell> {
  return (await json(scratchUrl(lesson, `/${name}`), put(change, last))) as StoredScratchCell;
}

export async function moveScratchCell(lesson: string, name: string, after: string): Promise<void> {
  await json(scratchUrl(lesson, `/${name}/move`), { method: "POST", body: JSON.stringify({ after }) });
}

export async function deleteScratchCell(lesson: string, name: string): Promise<void> {
  await json(scratchUrl(lesson, `/${name}`), { method: "DELETE" });
}

/** Deletes all cells that the learner has added to a page. */
export async function deleteScratchCells(lesson: string): Promise<void> {
  await json(scratchUrl(lesson), { method: "DELETE" });
}

/** A change; the last of a page goes on when the page is left, unless it is longer than browsers allow for that. */
function put(change: unknown, last: boolean): RequestInit {
  const body = JSON.stringify(change);
  return { method: "PUT", body, keepalive: last && new Blob([body]).size <= MOST_KEPT_ALIVE_BYTES };
}

function scratchUrl(lesson: string, rest = ""): string {
  return `/${language()}/scratch-cells${rest}?lesson=${encodeURIComponent(lesson)}`;
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

async function html(url: string, init: RequestInit = {}): Promise<string> {
  const response = await send(url, init);
  if (!response.ok) throw await responseError(response);
  return response.status === 204 ? "" : await response.text();
}

async function json(url: string, init: RequestInit = {}): Promise<unknown> {
  const response = await send(url, init);
  if (!response.ok) throw await responseError(response);
  return response.status === 204 || !response.headers.get("content-type")?.includes("json") ? null : response.json();
}
