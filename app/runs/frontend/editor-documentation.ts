/** Shift+Tab shows the signature and documentation of the name at the cursor; pressed again, it moves there. */

import { indentLess } from "@codemirror/commands";
import { type Extension, StateEffect, StateField } from "@codemirror/state";
import { EditorView, showTooltip, type Tooltip } from "@codemirror/view";

import { announce } from "../../web/frontend/announce";
import { make } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";
import type { Introspector } from "./introspection";

/** Characters that are announced; the rest can be read by moving to it. */
const SPOKEN = 200;

const show = StateEffect.define<Tooltip | null>();

const shown = StateField.define<Tooltip | null>({
  create: () => null,
  update(before, transaction) {
    for (const effect of transaction.effects) if (effect.is(show)) return effect.value;
    return transaction.docChanged || transaction.selection ? null : before;
  },
  provide: (field) => showTooltip.from(field),
});

export function documentation(): Extension {
  return [
    shown,
    EditorView.domEventHandlers({
      blur(event, view) {
        if (!view.dom.contains(event.relatedTarget as Node | null)) hideDocumentation(view);
      },
    }),
  ];
}

/** Hides the documentation; returns whether there was any. */
export function hideDocumentation(view: EditorView): boolean {
  if (!view.state.field(shown)) return false;
  view.dispatch({ effects: show.of(null) });
  return true;
}

/** In the indentation or over several lines, outdents; elsewhere, documents what is at the cursor. */
export function documentOrOutdent(view: EditorView, introspector: Introspector): boolean {
  const { doc, selection } = view.state;
  const { head, anchor } = selection.main;
  const line = doc.lineAt(head);
  const inIndentation = !line.text.slice(0, head - line.from).trim();
  if (inIndentation || doc.lineAt(anchor).number !== line.number) return indentLess(view);
  if (view.state.field(shown)) view.dom.querySelector<HTMLElement>(".documentation")?.focus();
  else void ask(view, introspector);
  return true;
}

async function ask(view: EditorView, introspector: Introspector): Promise<void> {
  const { state } = view;
  const { head } = state.selection.main;
  const found = await introspector.ask({ kind: "inspect", code: state.doc.toString(), cursor: head });
  if (view.state !== state && (!view.state.doc.eq(state.doc) || view.state.selection.main.head !== head)) return;
  const text = found?.text || say(found?.state === "answered" ? "editor.nothingToShow" : "editor.busy");
  announce(text.slice(0, SPOKEN));
  view.dispatch({ effects: show.of({ pos: head, above: false, create: () => ({ dom: tooltip(text, view) }) }) });
}

function tooltip(text: string, view: EditorView): HTMLElement {
  const dom = make("pre.documentation", { tabindex: 0, role: "note", "aria-label": say("editor.documentation") }, text);
  dom.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" && event.key !== "Tab") return;
    event.preventDefault();
    hideDocumentation(view);
    view.focus();
  });
  dom.addEventListener("blur", () => {
    if (!view.hasFocus) hideDocumentation(view);
  });
  return dom;
}
