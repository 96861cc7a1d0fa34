/**
 * Reloads a page of lessons when an instructor has changed its files, and shows the place that has changed.
 *
 * A stream says which lessons have changed. Edits of cells are kept, as in every reload. A file that is saved again
 * while the page reloads is noticed by its edition. A chunk of its own.
 */

const STREAM = "/lesson-changes";
const CHANGED = "lockstep:changed";
const PARTS = "article > *";
const COURSE_PATH = /^\/[a-z]+\/courses\/([^/]+)(?:\/([^/.]+))?$/;

interface Change {
  edition: string;
  /** Courses, and lessons as `course/slug`, that differ from those of the edition before. */
  changed: string[];
}

let begun = false;

/** Call this once the page is known to be an instructor's. */
export function setUpLiveReload(): void {
  if (begun || !followsFiles()) return;
  begun = true;
  const expected = showChange();
  let known: Document | null = null;
  let first = true;
  let work: Promise<void> = Promise.resolve();
  const hear = async ({ edition, changed }: Change): Promise<void> => {
    const missed = first && expected !== null && expected !== edition;
    if (missed || changed.some(concernsPage)) {
      const now = missed ? null : await served();
      reloadAt((known && now && firstChange(known, now)) ?? -1, edition);
      return;
    }
    if (first) known = await served();
    first = false;
  };
  const stream = new EventSource(STREAM);
  stream.addEventListener("lessons", ({ data }) => {
    work = work.then(() => hear(JSON.parse(data) as Change));
  });
  // A page in the back-forward cache must hold no stream.
  window.addEventListener("pagehide", () => stream.close());
}

/** Whether lessons are on this page, or would be, but for an error. Pages with forms are never reloaded. */
function followsFiles(): boolean {
  if (document.querySelector("body.lesson, body.map, body.home")) return true;
  return Boolean(document.querySelector("body.error-page")) && COURSE_PATH.test(window.location.pathname);
}

/** Whether a lesson or a course is on this page: home has all. */
function concernsPage(changed: string): boolean {
  const [, course, lesson] = COURSE_PATH.exec(window.location.pathname) ?? [];
  if (!course) return true;
  return lesson ? changed === `${course}/${lesson}` || changed === course : changed.split("/")[0] === course;
}

/** The page as the server has it; null if it cannot be reached. */
async function served(): Promise<Document | null> {
  try {
    const answer = await fetch(window.location.href, { headers: { accept: "text/html" }, cache: "no-store" });
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return null;
  }
}

/** The number of the part of the lesson to show after the reload; null if none has changed. */
function firstChange(before: Document, now: Document): number | null {
  return firstDifference(parts(before), parts(now));
}

function parts(page: Document): string[] {
  return [...page.querySelectorAll(PARTS)].map((part) => part.outerHTML);
}

/** The index of the first difference, in the new list; null if there is none. Pure. */
export function firstDifference(old: string[], fresh: string[]): number | null {
  const most = Math.max(old.length, fresh.length);
  for (let i = 0; i < most; i++) if (old[i] !== fresh[i]) return Math.min(i, Math.max(fresh.length - 1, 0));
  return null;
}

function reloadAt(part: number, edition: string): void {
  try {
    window.sessionStorage.setItem(CHANGED, JSON.stringify([window.location.pathname, part, edition]));
  } catch {
    // Storage is denied: the page stays where it is.
  }
  window.location.reload();
}

/** Shows the part for which the page was reloaded. Returns the edition that it was reloaded for, if it was. */
function showChange(): string | null {
  try {
    const stored = window.sessionStorage.getItem(CHANGED) ?? "[]";
    const [path, part, edition] = JSON.parse(stored) as [string?, number?, string?];
    window.sessionStorage.removeItem(CHANGED);
    if (path !== window.location.pathname || part === undefined) return null;
    const place = document.querySelectorAll<HTMLElement>(PARTS)[part];
    const box = place?.getBoundingClientRect();
    if (place && box && (box.top < 0 || box.top > window.innerHeight / 2)) place.scrollIntoView({ block: "center" });
    return edition ?? null;
  } catch {
    return null; // storage is denied
  }
}
