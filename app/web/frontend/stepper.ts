/** The buttons that go through the steps of a drawing, back and on. At an end, focus moves to the one that still works. */

import { make } from "./element";
import { say } from "./strings";

export class Stepper {
  readonly back = this.button(say("picture.back"), -1);
  readonly on = this.button(say("picture.on"), 1);
  /** From 0. */
  step = 0;

  /** `show` gets a step and the one before it. `pressed` is called when a button is pressed, before the step changes. */
  constructor(
    private readonly count: number,
    private readonly show: (step: number, before: number) => void,
    private readonly pressed: () => void = () => {},
  ) {}

  /** Goes to a step, or as far as there are steps. */
  go(to: number): void {
    const before = this.step;
    const hadFocus = document.activeElement === this.back || document.activeElement === this.on;
    this.step = Math.min(this.count - 1, Math.max(0, to));
    this.show(this.step, before);
    this.back.disabled = this.step === 0;
    this.on.disabled = this.step === this.count - 1;
    if (hadFocus && this.back.disabled) this.on.focus();
    else if (hadFocus && this.on.disabled) this.back.focus();
  }

  private button(label: string, by: number): HTMLButtonElement {
    const made = make<HTMLButtonElement>("button", { type: "button" }, label);
    made.addEventListener("click", () => {
      this.pressed();
      this.go(this.step + by);
    });
    return made;
  }
}
