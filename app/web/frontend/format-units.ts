/** Formats durations and sizes briefly. Units are international, so they are not translated. */

import { localizedNumber } from "./strings";

export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${localizedNumber(ms)} ms`;
  if (ms < 60_000) return `${localizedNumber(ms / 1_000, 1)} s`;
  const seconds = Math.round(ms / 1_000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 3_600), "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  return parts.flatMap(([count, unit]) => (count ? [`${localizedNumber(count)} ${unit}`] : [])).join(" ");
}

/** In the units of the limits: 1 KiB is 1,024 bytes. */
export function formatSize(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  return `${localizedNumber(value, value < 10 && unit > 0 ? 1 : 0)} ${units[unit] as string}`;
}
