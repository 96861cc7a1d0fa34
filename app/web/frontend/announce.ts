/** Announces outcomes and changes to screen readers, but never every line of output. */

let clearing: number | undefined;

export function announce(...said: string[]): void {
  const region = document.getElementById("announcements");
  if (!region) return;
  window.clearTimeout(clearing);
  // To announce the same sentence twice, the region must be empty in between.
  region.textContent = "";
  window.setTimeout(() => (region.textContent = joinSentences(said)), 60);
  clearing = window.setTimeout(() => (region.textContent = ""), 10_000);
}

/** Joins sentences for a screen reader, adding periods where they are missing. Pure. */
export function joinSentences(said: string[]): string {
  return said.filter(Boolean).reduce((before, piece) => `${before}${/[.!?。！？]$/.test(before) ? "" : "."} ${piece}`);
}
