/** Loads comments, and their script, when they are near the viewport or asked for. */

export function setUpCommentsLoader(): void {
  const look = (): void => {
    if (document.querySelector(".comments")) void import("./comments").then(({ setUpComments }) => setUpComments());
  };
  document.addEventListener("htmx:after:swap", look);
  look();
  document.addEventListener("click", ({ target }) => {
    const link = (target as Element).closest<HTMLAnchorElement>("a[data-discuss]");
    if (link) void import("./discuss").then(({ openDiscussion }) => openDiscussion(link));
  });
}
