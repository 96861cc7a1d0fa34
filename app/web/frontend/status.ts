/** The line under the output: how it goes, or how it ended and what to try. */

import { duration, size } from "./figures";
import type { Finished, Limit, Outcome, Waiting } from "./protocol";
import { figure, say, sayCount } from "./strings";

/** What the line says: a word, whether it is good, bad or neither, an advice, and figures. */
export interface Line {
  word: string;
  tone: "plain" | "good" | "bad" | "live";
  advice: string;
  facts: string[];
}

const QUIET: ReadonlySet<Outcome> = new Set(["ok", "error", "interrupted"]);

/** `sessionFailed`: it ended because Lockstep could not keep up the session, whatever the outcome is called. */
export function ended(finished: Finished, errorName: string, sessionFailed = false): Line {
  const { outcome, limit } = finished;
  const how = sessionFailed ? "session" : outcome;
  const facts: string[] = [];
  if (finished.first_output_ms !== null) facts.push(say("fact.first", { time: duration(finished.first_output_ms) }));
  if (finished.duration_ms > 0) facts.push(say("fact.ran", { time: duration(finished.duration_ms) }));
  if (finished.peak_bytes !== null) facts.push(say("fact.peak", { size: size(finished.peak_bytes) }));
  if (limit) facts.push(say("fact.limit", { limit: limitText(limit) }));
  return {
    word: say(`outcome.${how}`, { error: errorName || say("outcome.someError") }),
    tone: outcome === "ok" ? "good" : outcome === "interrupted" ? "plain" : "bad",
    advice: QUIET.has(outcome) ? "" : say(`advice.${how}`),
    facts,
  };
}

export function waitingLine(waiting: Waiting): Line {
  if (waiting.state === "reconnecting") return live(say("state.runnerAway"));
  if (waiting.state === "starting") return live(say("state.starting"));
  if (waiting.state === "queued" && waiting.position) return live(say("state.position", { position: waiting.position }));
  if (waiting.ahead > 0) return live(sayCount("state.behind", waiting.ahead));
  return live(say("state.queued"));
}

export function running(ms: number): Line {
  return { ...live(say("state.running")), facts: ms >= 1_000 ? [duration(Math.floor(ms / 1_000) * 1_000)] : [] };
}

export function live(word: string): Line {
  return { word, tone: "live", advice: "", facts: [] };
}

export function trouble(word: string, advice = ""): Line {
  return { word, tone: "bad", advice, facts: [] };
}

function limitText(limit: Limit): string {
  if (limit.unit === "s") return duration(limit.value * 1_000);
  return limit.unit === "bytes" ? size(limit.value) : figure(limit.value);
}
