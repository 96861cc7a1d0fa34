/** Prevents sending a form twice: after a double click, the browser would show only the second response. */

/** Long enough for a slow response; after that, the form can be sent again. */
const WAIT_MS = 10_000;

export function setUpDoubleSubmitGuard(): void {
  const sent = new Map<HTMLFormElement, number>();
  document.addEventListener("submit", (event) => {
    const form = event.target as HTMLFormElement;
    if (event.defaultPrevented || form.method !== "post") return; // htmx guards the forms that it sends
    const before = sent.get(form);
    if (before !== undefined && event.timeStamp - before < WAIT_MS) event.preventDefault();
    else sent.set(form, event.timeStamp);
  });
  addEventListener("pageshow", () => sent.clear()); // also when the page is restored
}

/** A key that is used once, so that the server stores what is sent twice only once. `crypto.randomUUID` needs TLS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
