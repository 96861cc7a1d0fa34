/** Progress in words: what is done, the total, and the remaining time. Pure, except for the page's language. */

import { language, localizedNumber, say, sayCount } from "../../web/frontend/strings";
import type { Progress } from "./protocol";

/** Keras calls with these labels start by tracing the model, during which no step is done. */
const TRACED = ["fit", "evaluate", "predict"];

export function progressText(event: Progress): string {
  if (isTracing(event)) return say("progress.tracing");
  const done = amount(event);
  const left = event.left_s === null || complete(event) ? "" : say("progress.left", { time: timeLeft(event.left_s) });
  return [done, left].filter(Boolean).join(" · ");
}

export function isTracing({ done, label }: Progress): boolean {
  return done === 0 && TRACED.includes(label);
}

function amount({ done, total, unit }: Progress): string {
  if (total === null) return say("progress.soFar", { done: localizedNumber(done) });
  const values = { done: localizedNumber(done) };
  if (unit === "epoch") return sayCount("progress.epochs", total, values);
  return unit === "step"
    ? sayCount("progress.steps", total, values)
    : say("progress.items", { ...values, total: localizedNumber(total) });
}

/** A duration as a rounded time in the page's language: "20 seconds", "3 minutes", "2 hours 10 minutes". */
export function timeLeft(seconds: number): string {
  if (seconds < 55)
    return quantity(seconds < 10 ? Math.max(1, Math.round(seconds)) : 5 * Math.round(seconds / 5), "second");
  const minutes = Math.max(1, Math.round(seconds / 60));
  if (minutes < 60) return quantity(minutes, "minute");
  const [hours, rest] = [Math.floor(minutes / 60), 10 * Math.floor((minutes % 60) / 10)];
  return rest ? `${quantity(hours, "hour")} ${quantity(rest, "minute")}` : quantity(hours, "hour");
}

function quantity(value: number, unit: "second" | "minute" | "hour"): string {
  return new Intl.NumberFormat(language(), { style: "unit", unit, unitDisplay: "long" }).format(value);
}

export function complete({ done, total }: Progress): boolean {
  return total !== null && done >= total;
}
