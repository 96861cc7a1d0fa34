/**
 * The editor, in a chunk of its own: CodeMirror with our colours, our keys and nothing else.
 *
 * Its style sheets are adopted by the document instead of being written into `<style>` elements, which the content
 * security policy forbids.
 */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import { tagHighlighter, tags as t } from "@lezer/highlight";
import { StyleModule } from "style-mod";

import { say } from "./strings";

export interface EditorEvents {
  changed(code: string): void;
  focused(): void;
  run(): void;
  runAndMoveOn(): void;
  escaped(): void;
}

adoptStyles();

/** Lezer's tags under the class names that Pygments uses on the server, so that both look the same. */
const COLOURS = tagHighlighter([
  { tag: [t.keyword, t.moduleKeyword, t.controlKeyword, t.definitionKeyword, t.operatorKeyword], class: "k" },
  { tag: [t.bool, t.null], class: "kc" },
  { tag: [t.string, t.special(t.string), t.docString], class: "s" },
  { tag: [t.comment, t.lineComment], class: "c" },
  { tag: t.number, class: "m" },
  { tag: [t.function(t.variableName), t.function(t.propertyName), t.function(t.definition(t.variableName))], class: "nf" },
  { tag: [t.className, t.definition(t.className)], class: "nc" },
  { tag: t.meta, class: "nd" },
]);

export class CellEditor {
  private readonly view: EditorView;

  /** Takes the place of `pre`, which has the same size and shows the same. */
  constructor(pre: HTMLElement, code: string, label: string, events: EditorEvents) {
    this.view = new EditorView({
      state: EditorState.create({ doc: code, extensions: [keys(events), ...look(label), listener(events)] }),
    });
    const shell = document.createElement("div");
    shell.className = "editor";
    shell.append(this.view.dom);
    pre.replaceWith(shell);
  }

  focus(at?: { x: number; y: number }): void {
    this.view.focus();
    if (!at) return;
    requestAnimationFrame(() => {
      this.view.dispatch({ selection: { anchor: this.view.posAtCoords(at, false) } });
    });
  }

  setCode(code: string): void {
    const { length } = this.view.state.doc;
    this.view.dispatch({ changes: { from: 0, to: length, insert: code }, userEvent: "lockstep.set" });
  }
}

function keys(events: EditorEvents): Extension {
  const does = (act: () => void) => () => {
    act();
    return true;
  };
  return keymap.of([
    { key: "Shift-Enter", run: does(events.runAndMoveOn) },
    { key: "Mod-Enter", run: does(events.run) },
    { key: "Ctrl-Enter", run: does(events.run) },
    {
      key: "Escape",
      run: (view) => {
        if (!view.state.selection.main.empty) return false;
        view.setTabFocusMode(true);
        events.escaped();
        return true;
      },
    },
    {
      any: (view, event) => {
        if (!["Tab", "Shift", "Escape"].includes(event.key)) view.setTabFocusMode(false);
        return false;
      },
    },
    indentWithTab,
    ...historyKeymap,
    ...defaultKeymap,
  ]);
}

function look(label: string): Extension[] {
  return [
    python(),
    history(),
    indentUnit.of("    "),
    EditorState.tabSize.of(4),
    highlightSpecialChars(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    syntaxHighlighting(COLOURS),
    replacing,
    EditorState.phrases.of({ "Control character": say("editor.control") }),
    EditorView.contentAttributes.of({
      "aria-label": label,
      "aria-describedby": "editor-help",
      tabindex: "0", // where code is wider than the page, what scrolls it by keys can be seen to be reachable
      autocapitalize: "off",
      autocorrect: "off",
      spellcheck: "false",
      translate: "no",
    }),
  ];
}

/**
 * Typing over a selection, done by us: the browser would carry the old text's look over as an inline style, which the
 * content security policy forbids.
 */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || !event.data || view.composing) return false;
    if (view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

function listener(events: EditorEvents): Extension {
  return EditorView.updateListener.of((update) => {
    const ours = update.transactions.some((transaction) => transaction.isUserEvent("lockstep.set"));
    if (update.docChanged && !ours) events.changed(update.state.doc.toString());
    if (update.focusChanged && update.view.hasFocus) events.focused();
    if (update.focusChanged && !update.view.hasFocus) update.view.setTabFocusMode(false);
  });
}

/** Mounts CodeMirror's style modules as adopted sheets. They come before ours in nothing but order, so ours are stronger. */
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
