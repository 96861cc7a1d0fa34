/** Loads the script of the playground on its page. */

import { lateScript } from "../../web/frontend/late-script";

export function setUpPlaygroundLoader(): void {
  if (!document.querySelector("[data-open]")) return;
  lateScript(() => import("./playground").then((module) => module.setUpPlayground()), { forms: ".share-form" })();
}
