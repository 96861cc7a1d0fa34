/** Announces outcomes and changes to screen readers, but never every line of output. */

const SPOKEN_MS = 10_000;

/** Adds a line to what is announced: one that follows quickly does not replace those that are still to be read. */
export function announce(...said: string[]): void {
  const line = document.createElement("p");
  line.textContent = joinSentences(said);
  if (!line.textContent) return;
  document.getElementById("announcements")?.append(line);
  window.setTimeout(() => line.remove(), SPOKEN_MS);
}

/** Joins sentences for a screen reader, adding periods where they are missing. Pure. */
export function joinSentences(said: string[]): string {
  return said
    .filter(Boolean)
    .reduce((before, piece) => (before ? `${before}${/[.!?。！？]$/.test(before) ? "" : "."} ${piece}` : piece), "");
}
