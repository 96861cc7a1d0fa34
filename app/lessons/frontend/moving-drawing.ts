/**
 * Drawings with steps: buttons and a slider show one step and its text at a time. Without a script, the drawing shows
 * its last step, and all texts are a list below it.
 */

import { make } from "../../web/frontend/element";
import { Stepper } from "../../web/frontend/stepper";
import { say } from "../../web/frontend/strings";

export function setUpMovingDrawings(): void {
  for (const drawing of document.querySelectorAll<SVGElement>("figure > .drawing[data-step-count]")) {
    const texts = drawing.parentElement?.querySelector<HTMLElement>("figcaption > ol:last-child");
    if (texts?.children.length === Number(drawing.dataset.stepCount)) setUpDrawing(drawing, texts);
  }
}

function setUpDrawing(drawing: SVGElement, texts: HTMLElement): void {
  const count = texts.children.length;
  const moving = [...drawing.querySelectorAll<SVGElement>("[data-steps]")];
  const draw = (step: number): void => {
    for (const part of moving) {
      if (isVisible(part.dataset.steps ?? "", step + 1)) part.removeAttribute("display");
      else part.setAttribute("display", "none");
    }
  };
  const slider = make<HTMLInputElement>("input", {
    type: "range",
    min: 1,
    max: count,
    "aria-label": say("picture.controls"),
  });
  const stepper = new Stepper(count, (step) => {
    draw(step);
    slider.value = String(step + 1);
    for (const [i, text] of [...texts.children].entries()) text.classList.toggle("current", i === step);
  });
  slider.addEventListener("input", () => stepper.go(slider.valueAsNumber - 1));
  texts.before(
    make(
      "div.step-controls",
      { role: "group", "aria-label": say("picture.controls") },
      stepper.back,
      slider,
      stepper.on,
    ),
  );
  texts.classList.add("step-texts");
  texts.setAttribute("aria-live", "polite");
  window.addEventListener("beforeprint", () => draw(count - 1)); // paper has the list of all texts
  window.addEventListener("afterprint", () => draw(stepper.step));
  stepper.go(0);
}

/** Whether something with these steps is visible in `step`: "2" in one, "2-4" in several, "2-" to the end. */
export function isVisible(steps: string, step: number): boolean {
  const [first, last] = steps.split("-");
  return step >= Number(first) && (last === "" || step <= Number(last ?? first));
}
