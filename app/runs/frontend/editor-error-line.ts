/** The mark of the line where the last run failed. Any edit clears it. */

import { type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";

const mark = StateEffect.define<number | null>();
const decoration = Decoration.line({ class: "error-line" });

const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, { docChanged, effects, state }) {
    for (const effect of effects) {
      if (!effect.is(mark)) continue;
      if (effect.value === null || effect.value > state.doc.lines) return Decoration.none;
      return Decoration.set(decoration.range(state.doc.line(effect.value).from));
    }
    return docChanged ? Decoration.none : before;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export function errorLine(): Extension {
  return marked;
}

/** Marks a line, counted from 1, or none. */
export function markErrorLine(view: EditorView, line: number | null): void {
  view.dispatch({ effects: mark.of(line) });
}
