/** A form that is on its way is not sent a second time: of a double click the browser would show the second answer only. */

/** Long enough for a slow answer; whoever stopped waiting can send again then. */
const WAIT_MS = 10_000;

export function setUpDoubleSubmitGuard(): void {
  const sent = new Map<HTMLFormElement, number>();
  document.addEventListener("submit", (event) => {
    const form = event.target as HTMLFormElement;
    if (event.defaultPrevented || form.method !== "post") return; // htmx has those that it sends itself
    const before = sent.get(form);
    if (before !== undefined && event.timeStamp - before < WAIT_MS) event.preventDefault();
    else sent.set(form, event.timeStamp);
  });
  addEventListener("pageshow", () => sent.clear()); // also when the page comes back
}
