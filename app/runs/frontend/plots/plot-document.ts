/**
 * What the documents of plots share. They are in a sandbox without an origin or a network: all they can do is draw, and
 * tell the page how high they are.
 */

export interface Theme {
  ink: string;
  muted: string;
  line: string;
  paper: string;
}

function theme(): Theme {
  return document.documentElement.dataset.theme === "dark"
    ? { ink: "#e9e7e1", muted: "#a4a9b6", line: "#2e323f", paper: "#0f1116" }
    : { ink: "#1a1d26", muted: "#565c69", line: "#dedad0", paper: "#f3f1ea" };
}

/** Draws the plot; one that cannot be drawn becomes a sentence. */
export function drawPlot<T>(draw: (plot: T, place: HTMLElement, theme: Theme) => Promise<unknown>): void {
  const place = document.getElementById("plot-place") as HTMLElement;
  const text = document.getElementById("plot")?.textContent ?? "";
  const report = (): void => parent.postMessage({ plotHeight: place.scrollHeight }, "*");
  new ResizeObserver(report).observe(place);
  void Promise.resolve()
    .then(() => draw(JSON.parse(text) as T, place, theme()))
    .catch((error: unknown) => {
      const problem = document.createElement("p");
      problem.className = "problem";
      problem.textContent = String(error).slice(0, 300);
      place.replaceChildren(problem);
    })
    .then(report); // a frame out of sight has no observers
}
