/** Speaks to people who listen to the page: outcomes and changes, never every line. */

let clearing: number | undefined;

export function announce(text: string): void {
  const region = document.getElementById("announcements");
  if (!region) return;
  window.clearTimeout(clearing);
  // The same sentence twice is spoken twice only if the region was empty in between.
  region.textContent = "";
  window.setTimeout(() => (region.textContent = text), 60);
  clearing = window.setTimeout(() => (region.textContent = ""), 10_000);
}
