/**
 * What belongs to an editor besides its code: the line below it, and the keys that a phone's keyboard hides. Line
 * numbers and wrapping are choices for all editors.
 */

import { insertBracket } from "@codemirror/autocomplete";
import { cursorCharLeft, cursorCharRight, undo } from "@codemirror/commands";
import { openSearchPanel } from "@codemirror/search";
import { Compartment, type Extension } from "@codemirror/state";
import { type Command, EditorView, lineNumbers } from "@codemirror/view";

import { make } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";
import { readViewOptions, storeViewOptions, type ViewOption } from "./view-options";

/** Those that most lines of code need come first: the others are reached by scrolling. */
const KEYS = [..."():=.,_\"[]'*/{}#@"];
const options = new Compartment();
const editors = new Set<EditorView>();

/** The chosen line numbers and wrapping, as an extension. */
export function viewOptions(): Extension {
  const chosen = readViewOptions();
  return options.of(extensions(chosen));
}

/** The line below the code: tools, which are one stop for Tab, and what Tab does. */
export function editorBar(view: EditorView, hint: HTMLElement): HTMLElement {
  editors.add(view);
  const tools = make("div.tools", { role: "toolbar", "aria-label": say("editor.tools") }, ...toolButtons(view));
  const buttons = [...tools.querySelectorAll("button")];
  for (const button of buttons.slice(1)) button.tabIndex = -1;
  tools.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (step && at >= 0) buttons[(at + step + buttons.length) % buttons.length]?.focus();
  });
  return make("div.editor-bar", {}, tools, hint);
}

/** The row of keys on a touch screen, above its keyboard, which stays open. */
export function keyRow(view: EditorView, tab: () => void): HTMLElement {
  const row = make("div.key-row", { role: "toolbar", "aria-label": say("editor.keys") });
  const act = (command: Command) => () => {
    command(view);
    view.focus();
  };
  const left = button("←", act(cursorCharLeft), say("editor.left"));
  const right = button("→", act(cursorCharRight), say("editor.right"));
  const undoLast = button(say("editor.undo"), act(undo));
  const characters = KEYS.map((key) => button(key, () => insert(view, key)));
  for (const key of [left, right, ...characters]) key.className = "key";
  row.append(button("Tab", tab), left, right, ...characters, undoLast, ...toolButtons(view));
  // Tab passes it by, because it goes when the focus leaves the code. A row that scrolls would be a stop by itself.
  for (const each of [row, ...row.querySelectorAll("button")]) each.tabIndex = -1;
  row.addEventListener("pointerdown", (event) => event.preventDefault());
  return row;
}

/** The height of the keyboard over the page, where it does not make the window itself smaller. */
function keyboardHeight(): number {
  const viewport = window.visualViewport;
  return viewport ? Math.max(0, window.innerHeight - viewport.height - viewport.offsetTop) : 0;
}

/** Puts the row of keys, and what is above it, on the keyboard. */
function followKeyboard(): void {
  document.documentElement.style.setProperty("--keyboard", `${keyboardHeight()}px`);
}

window.visualViewport?.addEventListener("scroll", followKeyboard);
window.visualViewport?.addEventListener("resize", () => {
  followKeyboard();
  for (const view of editors) if (view.hasFocus) view.dispatch({ scrollIntoView: true });
});

function toolButtons(view: EditorView): HTMLElement[] {
  return [
    optionButton("wrap", say("editor.wrap")),
    optionButton("numbers", say("editor.numbers")),
    button(say("editor.find"), () => openSearchPanel(view)),
  ];
}

function button(label: string, act: () => void, name?: string): HTMLElement {
  const made = make("button", { type: "button", "aria-label": name }, label);
  made.addEventListener("click", act);
  return made;
}

function optionButton(option: ViewOption, label: string): HTMLElement {
  const made = button(label, () => toggle(option));
  made.dataset.option = option;
  made.ariaPressed = String(readViewOptions().includes(option));
  return made;
}

/** Turns an option on or off in every editor of the page. */
function toggle(option: ViewOption): void {
  const chosen = readViewOptions();
  const next = chosen.includes(option) ? chosen.filter((each) => each !== option) : [...chosen, option];
  storeViewOptions(next);
  for (const editor of editors) editor.dispatch({ effects: options.reconfigure(extensions(next)) });
  for (const each of document.querySelectorAll<HTMLElement>(`[data-option=${option}]`))
    each.ariaPressed = String(next.includes(option));
}

function extensions(chosen: ViewOption[]): Extension[] {
  return [chosen.includes("wrap") ? EditorView.lineWrapping : [], chosen.includes("numbers") ? lineNumbers() : []];
}

function insert(view: EditorView, key: string): void {
  const typed = view.state.update(view.state.replaceSelection(key), { userEvent: "input.type" });
  view.dispatch(insertBracket(view.state, key) ?? typed);
  view.dispatch({ scrollIntoView: true });
  view.focus();
}
