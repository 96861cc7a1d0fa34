/** Animates the drawing of four replicas that wait for each other: once, and again after a run has succeeded. */

export function setUpBeatAnimation(): void {
  const drawing = document.querySelector<HTMLElement>("[data-beat]");
  if (!drawing) return;
  const play = (): void => {
    drawing.classList.remove("playing");
    drawing.getBoundingClientRect(); // forces a layout, so that the animation restarts
    drawing.classList.add("playing");
  };
  play();
  document.addEventListener("lockstep:finished", (event) => {
    const { restored } = (event as CustomEvent<{ restored: boolean }>).detail;
    if (!restored) play();
  });
}
