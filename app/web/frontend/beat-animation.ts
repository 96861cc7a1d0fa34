/** The drawing of four replicas that wait for each other: it plays once, and again when a run has ended well. */

export function setUpBeatAnimation(): void {
  const drawing = document.querySelector<HTMLElement>("[data-beat]");
  if (!drawing) return;
  const play = (): void => {
    drawing.classList.remove("playing");
    drawing.getBoundingClientRect(); // the restart needs a fresh layout
    drawing.classList.add("playing");
  };
  play();
  document.addEventListener("lockstep:finished", (event) => {
    const { restored } = (event as CustomEvent<{ restored: boolean }>).detail;
    if (!restored) play();
  });
}
