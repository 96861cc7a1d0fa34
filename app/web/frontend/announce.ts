/** Speaks to people who listen to the page: outcomes and changes, never every line. */

let clearing: number | undefined;

export function announce(...said: string[]): void {
  const region = document.getElementById("announcements");
  if (!region) return;
  window.clearTimeout(clearing);
  // The same sentence twice is spoken twice only if the region was empty in between.
  region.textContent = "";
  window.setTimeout(() => (region.textContent = joinSentences(said)), 60);
  clearing = window.setTimeout(() => (region.textContent = ""), 10_000);
}

/** Pieces as they are to be spoken: with a stop between those that bring none. Pure. */
export function joinSentences(said: string[]): string {
  return said.filter(Boolean).reduce((before, piece) => `${before}${/[.!?。！？]$/.test(before) ? "" : "."} ${piece}`);
}
