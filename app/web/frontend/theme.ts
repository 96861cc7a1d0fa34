/**
 * Runs before the first paint: applies the chosen theme, keeps the space that the page took when it was left, marks it
 * as having scripts, and remembers which buttons are pressed before app.js is there, which presses them again.
 */

import { reserveSpace } from "./reserved-space";

const root = document.documentElement;
root.classList.add("js");
try {
  const chosen = window.localStorage.getItem("lockstep:theme");
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
} catch {
  // Storage is denied: use the system's theme.
}
reserveSpace();

const remember = ({ target }: Event): void => {
  const button = (target as Element).closest<HTMLElement>("button[data-action]");
  if (button) button.dataset.pressed = "";
};
document.addEventListener("click", remember, true);
document.addEventListener("lockstep:ready", () => {
  document.removeEventListener("click", remember, true);
  for (const button of document.querySelectorAll<HTMLElement>("[data-pressed]")) {
    delete button.dataset.pressed;
    button.click();
  }
});
