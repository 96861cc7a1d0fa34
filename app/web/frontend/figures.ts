/** Durations and sizes in the shortest honest form. Units are international, so they are not translated. */

import { figure } from "./strings";

export function duration(ms: number): string {
  if (ms < 1_000) return `${figure(ms)} ms`;
  if (ms < 60_000) return `${figure(ms / 1_000, 1)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${figure(Math.floor(seconds / 60))} min ${figure(seconds % 60)} s`;
}

export function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${figure(value, value < 10 && unit > 0 ? 1 : 0)} ${units[unit] as string}`;
}
