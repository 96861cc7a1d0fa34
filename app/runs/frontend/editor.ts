/**
 * The editor, a chunk of its own: CodeMirror with only our colors and keys.
 *
 * The document adopts its style sheets instead of getting `<style>` elements, which the content security policy
 * forbids.
 */

import {
  acceptCompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionStatus,
  insertBracket,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentMore } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { closeSearchPanel, search, searchKeymap } from "@codemirror/search";
import { countColumn, EditorSelection, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import { tags as t, tagHighlighter } from "@lezer/highlight";
import { StyleModule } from "style-mod";

import { announce } from "../../web/frontend/announce";
import { make } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";
import { editorBar, keyRow, viewOptions } from "./editor-bar";
import { complete, completion } from "./editor-completion";
import { documentation, documentOrOutdent, hideDocumentation } from "./editor-documentation";
import { errorLine, markErrorLine } from "./editor-error-line";
import "./editor-styles";
import { Introspector, type Surroundings } from "./introspection";
import type { PlainCode } from "./plain-code";

const INDENT = 4;

export interface EditorEvents {
  changed(code: string): void;
  focused(): void;
  run(): void;
  runAndMoveOn(): void;
  /** Returns false if there is nothing to check; then the key has its default effect. */
  check(): boolean;
  escaped(): void;
}

adoptStyles();

/** Maps Lezer's tags to the class names of Pygments on the server, so that both look the same. */
const COLORS = tagHighlighter([
  { tag: [t.keyword, t.moduleKeyword, t.controlKeyword, t.definitionKeyword, t.operatorKeyword], class: "k" },
  { tag: [t.bool, t.null], class: "kc" },
  { tag: [t.string, t.special(t.string), t.docString], class: "s" },
  { tag: [t.comment, t.lineComment], class: "c" },
  { tag: t.number, class: "m" },
  {
    tag: [t.function(t.variableName), t.function(t.propertyName), t.function(t.definition(t.variableName))],
    class: "nf",
  },
  { tag: [t.className, t.definition(t.className)], class: "nc" },
  { tag: t.meta, class: "nd" },
]);

let toldOfEscape = false;

/**
 * Tab never traps the keyboard: after entering with Tab, Tab leaves. It indents only once the learner has clicked into
 * the code or changed it; then Escape makes Tab leave again, as the line below the code says.
 */
export class CellEditor {
  private readonly view: EditorView;
  private readonly hint = make("p.editor-hint", { "aria-hidden": "true" }); // screen readers get #editor-help

  /** Replaces `plain`, which has the same size and content, and takes over its selection and focus. */
  constructor(plain: PlainCode, code: string, label: string, surroundings: Surroundings, events: EditorEvents) {
    const introspector = new Introspector(surroundings);
    const leave = (): void => {
      this.setTabMoves(true);
      events.escaped();
    };
    this.view = new EditorView({
      state: EditorState.create({
        doc: plain.before ?? code,
        extensions: [keys(events, leave, introspector), ...look(label, introspector), this.listener(events)],
      }),
    });
    this.setTabMoves(!plain.clicked);
    const { selection, hasFocus } = plain;
    const { scrollLeft } = plain.pre;
    if (plain.before !== null) this.replace(code, "input.type"); // so that the change can be undone
    const { length } = this.view.state.doc;
    this.view.dispatch({
      selection: { anchor: Math.min(selection.anchor, length), head: Math.min(selection.head, length) },
    });
    const row = keyRow(this.view, () => {
      tab(this.view);
      this.view.focus();
    });
    plain.pre.replaceWith(make("div.editor", {}, this.view.dom, editorBar(this.view, this.hint), row));
    this.view.scrollDOM.scrollLeft = scrollLeft;
    if (hasFocus) this.view.focus();
  }

  focus(): void {
    this.view.focus();
  }

  /** Puts the cursor at the beginning of a line, counted from 1, and shows it. */
  goToLine(line: number): void {
    const { from, text } = this.view.state.doc.line(line);
    const anchor = from + text.length - text.trimStart().length;
    this.view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    this.view.focus();
  }

  /** Marks the line where the run failed, until the code changes; null for none. */
  markErrorLine(line: number | null): void {
    markErrorLine(this.view, line);
  }

  setCode(code: string): void {
    this.replace(code, "lockstep.set");
    this.view.scrollDOM.scrollLeft = 0; // a line that is gone may have been longer than the window is wide
  }

  private replace(code: string, userEvent: string): void {
    const { length } = this.view.state.doc;
    this.view.dispatch({ changes: { from: 0, to: length, insert: code }, userEvent });
  }

  private setTabMoves(moves: boolean): void {
    this.view.setTabFocusMode(moves);
    this.hint.textContent = say(moves ? "editor.tabMoves" : "editor.tabIndents");
  }

  private listener(events: EditorEvents): Extension {
    const updates = EditorView.updateListener.of((update) => {
      const ours = update.transactions.some((transaction) => transaction.isUserEvent("lockstep.set"));
      if (update.docChanged && !ours) {
        this.setTabMoves(false);
        events.changed(update.state.doc.toString());
      }
      if (update.focusChanged && update.view.hasFocus) events.focused();
      if (update.focusChanged && !update.view.hasFocus) this.setTabMoves(true);
    });
    const pressed = EditorView.domEventObservers({
      keydown: ({ key }) => {
        if (key === "Tab") this.hint.classList.add("needed");
      },
    });
    return [updates, pressed, EditorView.domEventHandlers({ pointerdown: () => this.setTabMoves(false) })];
  }
}

function keys(events: EditorEvents, leave: () => void, introspector: Introspector): Extension {
  const does = (act: () => void) => () => {
    act();
    return true;
  };
  return keymap.of([
    { key: "Shift-Enter", run: does(events.runAndMoveOn) },
    { key: "Mod-Enter", run: does(events.run) },
    { key: "Ctrl-Enter", run: does(events.run) },
    { key: "Alt-Enter", run: () => events.check() },
    { key: "Escape", run: (view) => closeCompletion(view) || hideDocumentation(view) || closeSearchPanel(view) },
    { key: "Escape", run: does(leave) },
    { key: "Tab", run: tab, shift: (view) => documentOrOutdent(view, introspector) },
    ...closeBracketsKeymap,
    ...searchKeymap,
    ...historyKeymap,
    ...defaultKeymap,
  ]);
}

/** Accepts a completion or starts one after a name; elsewhere, indents. */
function tab(view: EditorView): boolean {
  if (completionStatus(view.state) === "active") return acceptCompletion(view);
  return complete(view) || indent(view);
}

/** Inserts spaces up to the next tab stop at the cursor, or before each selected line. */
function indent(view: EditorView): boolean {
  if (!toldOfEscape) announce(say("editor.tabIndents"));
  toldOfEscape = true;
  const { state } = view;
  if (!state.selection.main.empty) return indentMore(view);
  const change = state.changeByRange(({ head }) => {
    const line = state.doc.lineAt(head);
    const insert = " ".repeat(INDENT - (countColumn(line.text, INDENT, head - line.from) % INDENT));
    return { changes: { from: head, insert }, range: EditorSelection.cursor(head + insert.length) };
  });
  view.dispatch(state.update(change, { userEvent: "input.indent", scrollIntoView: true }));
  return true;
}

function look(label: string, introspector: Introspector): Extension[] {
  return [
    python(),
    history(),
    indentUnit.of(" ".repeat(INDENT)),
    EditorState.tabSize.of(INDENT),
    highlightSpecialChars(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    completion(introspector),
    documentation(),
    errorLine(),
    search({ top: true }),
    viewOptions(),
    clearOfBars,
    syntaxHighlighting(COLORS),
    replacing,
    EditorState.phrases.of(phrases()),
    EditorView.contentAttributes.of({
      "aria-label": label,
      "aria-describedby": "editor-help",
      tabindex: "0", // makes the element that scrolls wide code visibly reachable by keyboard
      autocapitalize: "off",
      autocorrect: "off",
      spellcheck: "false",
      translate: "no",
    }),
  ];
}

/** Scrolls the cursor's line clear of what is fixed to the edges of the window, which CodeMirror takes for visible. */
const clearOfBars = EditorView.scrollHandler.of((view, { head }, { y }) => {
  if (y !== "nearest") return false;
  const line = view.lineBlockAt(head);
  const { top, bottom } = clearArea(view);
  const [above, below] = [top - (view.documentTop + line.top), view.documentTop + line.bottom - bottom];
  if (below > 0) window.scrollBy(0, below);
  else if (above > 0) window.scrollBy(0, -above);
  return false;
});

/** The part of the window that neither the page's bars nor the cell's own actions cover. */
function clearArea(view: EditorView): { top: number; bottom: number } {
  const { scrollPaddingTop, scrollPaddingBottom } = getComputedStyle(document.documentElement);
  const actions = view.dom.closest(".cell")?.querySelector<HTMLElement>(".cell-actions");
  const { position, bottom } = getComputedStyle(actions ?? view.dom);
  const covered = actions && position === "sticky" ? actions.offsetHeight + px(bottom) : px(scrollPaddingBottom);
  return { top: px(scrollPaddingTop), bottom: window.innerHeight - covered };
}

function px(length: string): number {
  return Number.parseFloat(length) || 0;
}

/**
 * Replaces the selection when the learner types over it: the browser would copy the old text's style as an inline
 * style, which the content security policy forbids.
 */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || !event.data || view.composing) return false;
    if (view.state.selection.main.empty) return false;
    const around = insertBracket(view.state, event.data);
    if (around) view.dispatch(around);
    else view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

/** CodeMirror's own words, in the page's language. */
function phrases(): Record<string, string> {
  return {
    "Control character": say("editor.control"),
    Completions: say("editor.completions"),
    Find: say("editor.find"),
    next: say("find.next"),
    previous: say("find.previous"),
    all: say("find.all"),
    "match case": say("find.case"),
    regexp: say("find.regexp"),
    "by word": say("find.word"),
    Replace: say("find.replaceWith"),
    replace: say("find.replace"),
    "replace all": say("find.replaceAll"),
    close: say("find.close"),
    "current match": say("find.current"),
    "on line": say("find.onLine"),
    "replaced match on line $": say("find.replaced", { line: "$" }),
    "replaced $ matches": say("find.replacedAll", { count: "$" }),
    "Go to line": say("find.goToLine"),
    go: say("find.go"),
  };
}

/** Adopts CodeMirror's style modules as style sheets, before ours, so that ours take precedence. */
function adoptStyles(): void {
  const mounted = new Set<StyleModule>();
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  StyleModule.mount = (_root, modules) => {
    for (const module of [modules].flat() as StyleModule[]) {
      if (mounted.has(module)) continue;
      mounted.add(module);
      sheet.replaceSync([...mounted].map((each) => each.getRules()).join("\n"));
    }
  };
}
