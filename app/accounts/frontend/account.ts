/** Account forms and flash messages: enhancements of what also works without scripts. */

import { announce } from "../../web/frontend/announce";
import { lateScript } from "../../web/frontend/late-script";

export function setUpAccount(): void {
  const timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const field of document.querySelectorAll<HTMLInputElement | HTMLSelectElement>("[data-time-zone]")) {
    const choices = field instanceof HTMLSelectElement ? [...field.options].map(({ value }) => value) : [timeZone];
    if (choices.includes(timeZone)) field.value = timeZone;
  }
  if (document.querySelector("[data-passkey-sign-in], [data-passkey-new]"))
    lateScript(() => import("./passkeys").then(({ setUpPasskeys }) => setUpPasskeys()), {
      forms: "[data-passkey-new]",
      buttons: "[data-passkey-sign-in] button",
    })();
  document.addEventListener("click", ({ target }) => {
    const button = (target as Element).closest<HTMLElement>("[data-reveal], [data-dismiss]");
    if (!button) return;
    if (button.dataset.reveal) reveal(button, button.dataset.reveal);
    else button.parentElement?.remove();
  });
  document.addEventListener("htmx:after:swap", () => {
    if (document.querySelector("#bell .bell-link"))
      void import("../../notifications/frontend/bell").then(({ setUpBell }) => setUpBell());
    if (document.querySelector("#account-menu[data-staff]"))
      void import("../../authoring/frontend/live-reload").then(({ setUpLiveReload }) => setUpLiveReload());
    const said = document.querySelector<HTMLElement>("[data-announce]");
    if (!said) return;
    said.removeAttribute("data-announce");
    announce([...said.querySelectorAll("p")].map((line) => line.textContent).join(" "));
  });
}

/** Shows the password while the button is toggled on. */
function reveal(button: HTMLElement, id: string): void {
  const field = document.getElementById(id) as HTMLInputElement;
  const shown = field.type === "password";
  field.type = shown ? "text" : "password";
  button.setAttribute("aria-pressed", String(shown));
}
