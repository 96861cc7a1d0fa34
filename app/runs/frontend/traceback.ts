/**
 * Folds a traceback to the learner's code: the frames of libraries are one click away, and the frames of cells lead to
 * their lines.
 */

import { make } from "../../web/frontend/element";
import { say, sayCount } from "../../web/frontend/strings";
import type { ErrorEvent, Frame } from "./protocol";
import { renderText } from "./render-rows";

export interface Stretch {
  own: boolean;
  frames: Frame[];
}

/** The line of a cell that a frame is in. */
export interface FramePlace {
  line: number;
  title: string;
  /** What follows the line in the frame's head, such as ", in step(x)". */
  rest: string;
  go(): void;
}

/** Groups neighboring frames of the same kind. */
export function stretches(frames: Frame[]): Stretch[] {
  const found: Stretch[] = [];
  for (const frame of frames) {
    const last = found.at(-1);
    if (last?.own === frame.own) last.frames.push(frame);
    else found.push({ own: frame.own, frames: [frame] });
  }
  return found;
}

export function showTraceback(event: ErrorEvent, placeOf: (frame: Frame) => FramePlace | null): HTMLElement {
  const parts = stretches(event.frames).map(({ own, frames }) => {
    const painted = frames.map((frame) => showFrame(frame, own ? placeOf(frame) : null));
    if (own) return make("div.own", {}, ...painted);
    const summary = make("summary", {}, sayCount("output.frames", frames.length));
    return make("details.library", {}, summary, ...painted);
  });
  if (!parts.length) parts.push(make("div.own", {}, ...renderText(`${event.name}: ${event.value}`)));
  return make("div.traceback", {}, ...parts);
}

/** A line of which the next one marks a part, with `^` or `~` below it. Pure. */
export function isMarked(next: string | undefined): boolean {
  return next !== undefined && /^\s*[\^~][\^~ ]*$/.test(next);
}

/** A line of code with its number, such as `----> 5     x = 1`: wrapped, its indentation would be lost. Pure. */
export function isNumbered(line: string): boolean {
  return /^(-+>|\s)\s*(\(\.\.\.\)\s*)?\d+( |$)/.test(line);
}

function showFrame(frame: Frame, place: FramePlace | null): HTMLElement {
  const rows = renderText(frame.text);
  rows.forEach((row, i) => {
    if (i && isNumbered(row.textContent)) row.classList.add("unwrapped");
    if (isMarked(rows[i + 1]?.textContent)) for (const each of [row, rows[i + 1]]) each?.classList.add("unwrapped");
  });
  if (place) {
    const link = make(
      "button.frame-place",
      { type: "button" },
      say("error.line", { line: place.line, cell: place.title }),
    );
    link.addEventListener("click", () => place.go());
    rows[0]?.replaceChildren(link, place.rest);
  }
  return make("div.frame", {}, ...rows);
}
