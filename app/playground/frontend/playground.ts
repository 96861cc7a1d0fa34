/**
 * The page of the playground, a chunk of its own: opens files that are chosen or dropped on the page, and completes the
 * form that shares a copy.
 */

import { NetworkError, ResponseError, responseError, send } from "../../runs/frontend/api";
import { announce } from "../../web/frontend/announce";
import { need } from "../../web/frontend/element";
import { localizedNumber, say, sayCount } from "../../web/frontend/strings";

/** As for an import. Larger files are not read: with its outputs, a notebook may be much larger than what is sent. */
const MAX_FILE_BYTES = 64_000_000;
/** As in app/web/body_limit.py, less what surrounds the text. */
const MAX_SENT_BYTES = 900_000;
/** As in app/playground/notebook_file.py, whose limit such a file meets first. */
const DATA_ENDINGS = /\.(csv|tsv|txt|json|jsonl)$/i;
const MAX_DATA_KB = 90;
/** Each is a request, and the page can have only so many cells. */
const MOST_FILES = 20;
/** What there is to say and to show once the page has been loaded again. */
const OPENED = "lockstep:opened";
/** How long the button that copies the link says that it has. */
const COPIED_MS = 2_500;

interface Exchange {
  ctx: { sourceElement: Element; request: { method?: string } };
}

interface Opened {
  trouble: string;
  /** The names of the new cells. */
  cells: string[];
}

/** The message names the limit. */
class FileTooLarge extends Error {}
class TooManyFiles extends Error {}

export function setUpPlayground(): void {
  const field = document.querySelector<HTMLInputElement>("[data-open]");
  if (field) {
    const chosen = (): void => {
      const files = [...(field.files ?? [])];
      field.value = ""; // the same file can be chosen again, and no browser chooses it once more after a reload
      if (!field.disabled) void open(field, files);
    };
    field.addEventListener("change", chosen);
    showOpened(takeOpened());
    if (field.files?.length) chosen(); // before this script was there
  }
  document.addEventListener("click", ({ target }) => {
    if ((target as Element).closest("[data-action=copy-link]")) void copyLink();
  });
  // Before htmx reads the form: the machine that is chosen above the cells is that of the copy.
  document.addEventListener("submit", ({ target }) => completeForm(target as HTMLFormElement), { capture: true });
  document.addEventListener("htmx:after:swap", (event) => {
    const { sourceElement, request } = (event as CustomEvent<Exchange>).detail.ctx;
    if (sourceElement.id === "shares" && request.method === "POST") moveFocus();
  });
}

/** Opens the files one after another, up to the first that cannot be opened. */
async function open(field: HTMLInputElement, files: readonly File[]): Promise<void> {
  if (!files.length) return;
  const trouble = need(document, "#open-trouble");
  trouble.textContent = say("playground.opening");
  const focused = document.activeElement === field;
  field.disabled = true; // until the page shows these cells
  const cells: string[] = [];
  let done = 0;
  try {
    if (files.length > MOST_FILES) throw new TooManyFiles();
    for (const file of files) {
      const body = JSON.stringify({ name: file.name, text: await readFile(file) });
      const response = await send(field.dataset.open ?? "", { method: "POST", body });
      if (!response.ok) throw await responseError(response);
      cells.push(...((await response.json()) as { cells: string[] }).cells);
      done += 1;
    }
    loadAgain({ trouble: "", cells });
  } catch (error) {
    const problem = words(error);
    trouble.textContent = files.length > 1 ? `${files[done]?.name ?? ""}: ${problem}` : problem;
    // The cells of the files before it: otherwise they would be opened again.
    if (done && loadAgain({ trouble: trouble.textContent, cells })) return;
    field.disabled = false;
    if (focused) field.focus();
  }
}

/** Loads the page with the new cells. Without storage, a problem stays, and the cells show when the page is next opened. */
function loadAgain(opened: Opened): boolean {
  try {
    sessionStorage.setItem(OPENED, JSON.stringify(opened));
  } catch {
    if (opened.trouble) return false;
  }
  location.reload();
  return true;
}

/** What was opened before the page was loaded again. */
function takeOpened(): Opened {
  try {
    const opened = sessionStorage.getItem(OPENED);
    sessionStorage.removeItem(OPENED);
    if (opened) return JSON.parse(opened) as Opened;
  } catch {
    // Storage is denied.
  }
  return { trouble: "", cells: [] };
}

/** Says what could not be opened, and how many cells are new; scrolls to the first of them once it is there. */
function showOpened({ trouble, cells }: Opened): void {
  need(document, "#open-trouble").textContent = trouble;
  const [first] = cells;
  if (first === undefined) return;
  const show = (): boolean => {
    const cell = document.querySelector(`[data-scratch-name="${CSS.escape(first)}"]`);
    if (!cell) return false;
    cell.scrollIntoView();
    announce(sayCount("playground.added", cells.length));
    return true;
  };
  if (show()) return;
  const arrival = new MutationObserver(() => show() && arrival.disconnect());
  arrival.observe(need(document, ".playground-cells"), { childList: true, subtree: true });
}

function words(error: unknown): string {
  if (error instanceof FileTooLarge) return error.message;
  if (error instanceof TooManyFiles) return say("playground.tooMany", { most: localizedNumber(MOST_FILES) });
  if (error instanceof ResponseError || error instanceof NetworkError) return error.message;
  if (error instanceof DOMException) return say("playground.unreadable");
  throw error;
}

/** The text of a file; of a notebook, without its outputs, which the server would drop anyway. */
export async function readFile(file: File): Promise<string> {
  if (DATA_ENDINGS.test(file.name) && file.size > MAX_SENT_BYTES)
    throw new FileTooLarge(say("playground.dataTooLarge", { most: MAX_DATA_KB }));
  if (file.size > MAX_FILE_BYTES) throw new FileTooLarge(say("playground.tooLargeToRead"));
  const text = withoutOutputs(await file.text());
  if (new Blob([text]).size > MAX_SENT_BYTES) throw new FileTooLarge(say("playground.tooLarge"));
  return text;
}

/** Not a text: one of megabytes, spread into an object, would take gigabytes. */
function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** The notebook without outputs, attachments and the state of widgets; anything else as it is. Pure. */
export function withoutOutputs(text: string): string {
  try {
    const found = JSON.parse(text) as { cells?: unknown; metadata?: unknown };
    const { cells: there, metadata = {} } = found;
    if (!Array.isArray(there) || !there.every(isObject) || !isObject(metadata)) return text;
    const cells = there.map((cell) => ({
      ...cell,
      ...("outputs" in cell ? { outputs: [] } : {}),
      ...("attachments" in cell ? { attachments: {} } : {}),
    }));
    return JSON.stringify({ ...found, metadata: { ...metadata, widgets: undefined }, cells });
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

/** The timer that restores the button's own words. */
let saying = 0;

/** Copies the link, or selects it where the browser does not allow that. The button says so, for a moment if it worked. */
async function copyLink(): Promise<void> {
  const link = need<HTMLInputElement>(document, "#share-link");
  const label = need<HTMLElement>(document, "[data-action=copy-link] .label");
  let said = say("playground.copied");
  window.clearTimeout(saying);
  try {
    await navigator.clipboard.writeText(link.value);
    saying = window.setTimeout(() => (label.textContent = label.dataset.label ?? ""), COPIED_MS);
  } catch {
    said = say("playground.notCopied");
    link.select();
  }
  label.textContent = said;
  announce(said);
}
