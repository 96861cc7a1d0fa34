/** Tracks reading: that a lesson was opened, the current position, and whether its end was in view. */

import type { ReadingProgress, ReadingProgressStore } from "./reading-progress";

const REST_MS = 800;
/** The height on the screen where people read. */
const LINE = 0.3;

/** Tracks reading on this page; calls `onProgress` when there is something new. */
export function setUpScrollTracking(
  article: HTMLElement,
  readings: ReadingProgressStore,
  onProgress: (reading: ReadingProgress) => void,
): void {
  const lesson = article.dataset.reading ?? "";
  const opened_at = Date.now();
  const note = (end_reached_at: number | null, anchor: string): void => {
    if (readings.add({ lesson, opened_at, last_seen_at: Date.now(), end_reached_at, anchor })) {
      const reading = readings.find(lesson);
      if (reading) onProgress(reading);
    }
  };
  note(null, "");
  let resting = 0;
  const rest = (): void => {
    window.clearTimeout(resting);
    resting = window.setTimeout(() => note(null, scrollAnchor(article)), REST_MS);
  };
  window.addEventListener("scroll", rest, { passive: true });
  window.addEventListener("pagehide", () => window.clearTimeout(resting));
  const end = document.querySelector("[data-reading-end]");
  if (!end) return;
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    note(Date.now(), scrollAnchor(article));
  });
  observer.observe(end);
}

/** The ID of the current heading or cell; empty above the first. */
function scrollAnchor(article: HTMLElement): string {
  const line = window.innerHeight * LINE;
  const places = [...article.querySelectorAll<HTMLElement>(".prose :is(h2, h3)[id], section.cell[id]")];
  const id = places.findLast((place) => place.getBoundingClientRect().top <= line)?.id ?? "";
  return /^[\p{L}\p{N}_.-]{1,100}$/u.test(id) ? id : "";
}
