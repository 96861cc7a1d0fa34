/** Loads comments, and their script, when they are near the viewport. */

export function setUpCommentsLoader(): void {
  const look = (): void => {
    if (document.querySelector(".comments")) void import("./comments").then(({ setUpComments }) => setUpComments());
  };
  document.addEventListener("htmx:after:swap", look);
  look();
}
