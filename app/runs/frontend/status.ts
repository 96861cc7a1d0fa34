/** The status line below the output: the state of the run, or how it ended and what to try. */

import { formatDuration, formatSize } from "../../web/frontend/format-units";
import { localizedNumber, say, sayCount } from "../../web/frontend/strings";
import type { Finished, Limit, Outcome, Waiting } from "./protocol";

/** The content of the line: a label, its tone (good, bad or neutral), advice, and numbers. */
export interface Line {
  word: string;
  tone: "plain" | "good" | "bad" | "live";
  advice: string;
  facts: string[];
}

const QUIET: ReadonlySet<Outcome> = new Set(["ok", "error", "interrupted"]);

/** Shorter waits for the session are not worth a word. */
const SHORT_WAIT_MS = 100;

/** The limit behind an outcome, if the event does not name it. */
const BEHIND: Partial<Record<Outcome, string>> = {
  timeout: "time",
  cpu: "cpu",
  memory: "memory",
  output: "output",
  processes: "processes",
  disk: "disk",
  files: "open_files",
};

/** What else is known when a run ends. */
export interface Circumstances {
  errorName?: string;
  /** Lockstep could not keep the session running, whatever the outcome. */
  sessionFailed?: boolean;
  /** A name is undefined, and the session has not run every cell above. */
  cellsMissing?: boolean;
  /** A process of the cluster has ended: the next run restarts all of them. */
  workerEnded?: boolean;
}

export function ended(finished: Finished, about: Circumstances = {}): Line {
  const { outcome, limit } = finished;
  const facts: string[] = [];
  if (limit) facts.push(limitText(limit));
  // The event counts from pressing Run. The first output is shown from the start, like the time that the code ran.
  const waited = finished.at_ms - finished.duration_ms;
  if (finished.duration_ms > 0 && waited >= SHORT_WAIT_MS)
    facts.push(say("fact.waited", { time: formatDuration(waited) }));
  if (finished.first_output_ms !== null && finished.duration_ms > 0)
    facts.push(say("fact.first", { time: formatDuration(Math.max(0, finished.first_output_ms - waited)) }));
  if (finished.duration_ms > 0) facts.push(say("fact.ran", { time: formatDuration(finished.duration_ms) }));
  if (finished.peak_bytes !== null) facts.push(say("fact.peak", { size: formatSize(finished.peak_bytes) }));
  return {
    word: word(outcome, about),
    tone: outcome === "ok" ? "good" : outcome === "interrupted" ? "plain" : "bad",
    advice: advice(finished, about),
    facts,
  };
}

function word(outcome: Outcome, { sessionFailed, errorName }: Circumstances): string {
  if (sessionFailed) return say("outcome.session");
  if (outcome === "error" && !errorName) return say("outcome.someError"); // such as after the output was deleted
  return say(`outcome.${outcome}`, { error: errorName ?? "" });
}

function advice({ outcome, limit }: Finished, about: Circumstances): string {
  if (about.sessionFailed) return say("advice.session");
  if (about.cellsMissing) return say("advice.cellsMissing");
  if (limit) return say(`advice.${limit.name}`);
  if (about.workerEnded) return say("advice.workerEnded");
  return QUIET.has(outcome) ? "" : say(`advice.${BEHIND[outcome] ?? outcome}`);
}

export function waitingLine(waiting: Waiting): Line {
  if (waiting.state === "reconnecting") return live(say("state.runnerAway"));
  if (waiting.state === "unstored") return live(say("state.unstored"));
  if (waiting.state === "starting") return live(say("state.starting"));
  if (waiting.state === "queued" && waiting.position)
    return { ...live(say("state.position", { position: waiting.position })), facts: waitFacts(waiting) };
  if (waiting.ahead > 0) return live(sayCount("state.behind", waiting.ahead));
  return live(say("state.queued"));
}

function waitFacts({ wait_s }: Waiting): string[] {
  if (wait_s === null || wait_s === undefined) return [];
  return [
    wait_s
      ? say("wait.about", { time: formatDuration(wait_s * 1_000) })
      : say("wait.lessThan", { time: formatDuration(10_000) }),
  ];
}

export function running(ms: number): Line {
  return { ...live(say("state.running")), facts: ms >= 1_000 ? [formatDuration(Math.floor(ms / 1_000) * 1_000)] : [] };
}

export function live(word: string): Line {
  return { word, tone: "live", advice: "", facts: [] };
}

export function trouble(word: string, advice = ""): Line {
  return { word, tone: "bad", advice, facts: [] };
}

/** The limit and its value: "memory limit 2 GiB". */
function limitText(limit: Limit): string {
  return say(`limit.${limit.name}`, { value: limitValue(limit) });
}

function limitValue({ unit, value }: Limit): string {
  if (unit === "s") return formatDuration(value * 1_000);
  return unit === "count" ? localizedNumber(value) : formatSize(value);
}
