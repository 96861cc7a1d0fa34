/** Folds a traceback to the learner's code: the frames of libraries are one click away. */

import { make } from "../../web/frontend/element";
import { sayCount } from "../../web/frontend/strings";
import type { ErrorEvent, Frame } from "./protocol";
import { renderText } from "./render-rows";

export interface Stretch {
  own: boolean;
  frames: Frame[];
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

export function showTraceback(event: ErrorEvent): HTMLElement {
  const parts = stretches(event.frames).map(({ own, frames }) => {
    const painted = frames.map((frame) => make("div.frame", {}, ...renderText(frame.text)));
    if (own) return make("div.own", {}, ...painted);
    const summary = make("summary", {}, sayCount("output.frames", frames.length));
    return make("details.library", {}, summary, ...painted);
  });
  if (!parts.length) parts.push(make("div.own", {}, ...renderText(`${event.name}: ${event.value}`)));
  return make("div.traceback", {}, ...parts);
}
