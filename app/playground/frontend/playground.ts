/**
 * The page of the playground, a chunk of its own: opens files that are chosen or dropped on the page, and completes the
 * form that shares a copy.
 */

import { NetworkError, ResponseError, responseError, send } from "../../runs/frontend/api";
import { announce } from "../../web/frontend/announce";
import { need } from "../../web/frontend/element";
import { localizedNumber, say } from "../../web/frontend/strings";

/** Larger files are not read: with its outputs, a notebook may be much larger than what is sent. */
const MAX_FILE_BYTES = 20_000_000;
/** As in app/web/body_limit.py, less what surrounds the text. */
const MAX_SENT_BYTES = 900_000;
/** Each is a request, and the page can have only so many cells. */
const MOST_FILES = 20;
const TROUBLE = "lockstep:open-trouble";

interface Exchange {
  ctx: { sourceElement: Element; request: { method?: string } };
}

class FileTooLarge extends Error {}
class TooManyFiles extends Error {}

export function setUpPlayground(): void {
  const field = document.querySelector<HTMLInputElement>("[data-open]");
  if (field) {
    const chosen = (): void => {
      const files = [...(field.files ?? [])];
      field.value = ""; // the same file can be chosen again, and no browser chooses it once more after a reload
      void open(field.dataset.open ?? "", files);
    };
    field.addEventListener("change", chosen);
    need(document, "#open-trouble").textContent = takeTrouble();
    if (field.files?.length) chosen(); // before this script was there
  }
  // Before htmx reads the form: the machine that is chosen above the cells is that of the copy.
  document.addEventListener("submit", ({ target }) => completeForm(target as HTMLFormElement), { capture: true });
  document.addEventListener("htmx:after:swap", (event) => {
    const { sourceElement, request } = (event as CustomEvent<Exchange>).detail.ctx;
    if (sourceElement.id === "shares" && request.method === "POST") moveFocus();
  });
}

/** Opens the files one after another, up to the first that cannot be opened. */
async function open(url: string, files: readonly File[]): Promise<void> {
  if (!files.length) return;
  const trouble = need(document, "#open-trouble");
  trouble.textContent = say("playground.opening");
  let done = 0;
  try {
    if (files.length > MOST_FILES) throw new TooManyFiles();
    for (const file of files) {
      const body = JSON.stringify({ name: file.name, text: await readFile(file) });
      const response = await send(url, { method: "POST", body });
      if (!response.ok) throw await responseError(response);
      done += 1;
    }
    location.reload(); // shows the new cells
  } catch (error) {
    const problem = words(error);
    trouble.textContent = files.length > 1 ? `${files[done]?.name ?? ""}: ${problem}` : problem;
    if (done) showOpened(trouble.textContent);
  }
}

/** Shows the cells of the files before the one that could not be opened: otherwise they would be opened again. */
function showOpened(problem: string): void {
  try {
    sessionStorage.setItem(TROUBLE, problem);
  } catch {
    return; // storage is denied: the cells show when the page is next opened
  }
  location.reload();
}

/** What could not be opened before the page was loaded again. */
function takeTrouble(): string {
  try {
    const problem = sessionStorage.getItem(TROUBLE) ?? "";
    sessionStorage.removeItem(TROUBLE);
    return problem;
  } catch {
    return "";
  }
}

function words(error: unknown): string {
  if (error instanceof FileTooLarge) return say("playground.tooLarge");
  if (error instanceof TooManyFiles) return say("playground.tooMany", { most: localizedNumber(MOST_FILES) });
  if (error instanceof ResponseError || error instanceof NetworkError) return error.message;
  if (error instanceof DOMException) return say("playground.unreadable");
  throw error;
}

/** The text of a file; of a notebook, without its outputs, which the server would drop anyway. */
async function readFile(file: File): Promise<string> {
  if (file.size > MAX_FILE_BYTES) throw new FileTooLarge();
  const text = withoutOutputs(await file.text());
  if (new Blob([text]).size > MAX_SENT_BYTES) throw new FileTooLarge();
  return text;
}

/** The notebook without outputs and attachments; anything else as it is. Pure. */
export function withoutOutputs(text: string): string {
  try {
    const found = JSON.parse(text) as { cells?: unknown };
    if (!Array.isArray(found.cells)) return text;
    const cells = found.cells.map((cell: Record<string, unknown>) => ({
      ...cell,
      ...("outputs" in cell ? { outputs: [] } : {}),
      ...("attachments" in cell ? { attachments: {} } : {}),
    }));
    return JSON.stringify({ ...found, cells });
  } catch {
    return text;
  }
}

function completeForm(form: HTMLFormElement): void {
  const machine = document.querySelector<HTMLElement>(".page-machine");
  if (!machine || !form.matches(".share-form")) return;
  for (const name of ["topology", "keras"] as const)
    need<HTMLInputElement>(form, `[name=${name}]`).value = machine.dataset[name] ?? "";
}

/** Moves from the button that is gone to the new link, so that it can be copied at once, to a mistake, or to the heading. */
function moveFocus(): void {
  const link = document.querySelector<HTMLInputElement>("[data-select]");
  const mistake = document.querySelector<HTMLElement>("#shares [aria-invalid]");
  (link ?? mistake ?? need(document, "#shares-title")).focus();
  link?.select();
  if (!mistake) announce(say(link ? "playground.shared" : "playground.revoked"));
}
