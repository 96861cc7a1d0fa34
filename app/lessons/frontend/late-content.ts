/** Reserves space for the learner's work that a page requests: exercises, questions, and the learner's own cells. */

import { heightRule } from "../../web/frontend/reserved-space";

const OWN_CELLS = "data-own-cells-shown";
const WORK = "data-work-shown";
/** Whatever the reader has opened is closed when the page loads again, so its space would be too high. */
const CLOSED = ":not(:has(.solution, details[open]))";

/** Called once the learner's own cells are on the page, or it is known that there are none. */
export function ownCellsShown(): void {
  document.documentElement.setAttribute(OWN_CELLS, "");
}

/** Notes when the server has sent what the learner has done, or has failed to. */
export function setUpWorkSpace(): void {
  document.addEventListener("htmx:finally:request", ({ target }) => {
    if (target instanceof Element && target.matches("[data-lesson-work]"))
      document.documentElement.setAttribute(WORK, "");
  });
}

/** Style rules that keep the space of checks and answers free until the server has sent them. */
export function workSpace(): string[] {
  const until = `html:not([${WORK}])`;
  const checks = find(`.exercise-body[data-passed]${CLOSED}`).map((body) =>
    heightRule(`${until} #${body.id}:not([data-passed])`, body),
  );
  const answers = find(`.question:not([data-state="open"])${CLOSED}`).map((question) => {
    const most = `max-height: ${question.offsetHeight}px; overflow: auto;`; // the open form may be higher
    return heightRule(`${until} #${question.id}[data-state="open"]`, question, most);
  });
  return [...checks, ...answers];
}

/** Style rules that keep the space of the learner's own cells free, below the rows of buttons that they follow. */
export function ownCellSpace(): string[] {
  const until = `html:not([${OWN_CELLS}])`;
  const rules = find("[data-after] + .scratch").flatMap(({ previousElementSibling: row }) => {
    if (!(row instanceof HTMLElement) || row.closest(".scratch")) return [];
    let last: Element = row;
    while (last.nextElementSibling?.matches(".scratch")) last = last.nextElementSibling;
    const bottom = last.nextElementSibling?.getBoundingClientRect().top ?? last.getBoundingClientRect().bottom;
    const free = bottom - row.getBoundingClientRect().bottom;
    return [`${until} [data-after="${row.dataset.after}"] { margin-bottom: ${free}px; }`];
  });
  const tools = rules.length ? find(".lesson-tools") : []; // with a button that deletes these cells
  return [...rules, ...tools.map((bar) => heightRule(`${until} .lesson-tools`, bar))];
}

function find(selector: string): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(selector)].filter((element) => element.offsetHeight);
}
