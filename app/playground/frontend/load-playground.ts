/** Loads the script of the playground on its page. */

export function setUpPlaygroundLoader(): void {
  if (document.querySelector("[data-open]")) void import("./playground").then((module) => module.setUpPlayground());
}
