/** Comments come when they are near the view; their script comes with them. */

export function setUpCommentsLoader(): void {
  const look = (): void => {
    if (document.querySelector(".comments")) void import("./comments").then(({ setUpComments }) => setUpComments());
  };
  document.addEventListener("htmx:after:swap", look);
  look();
}
