/** Completion in the editor: Tab after a name offers the names that could follow, and completes the only possibility. */

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  pickedCompletion,
  startCompletion,
} from "@codemirror/autocomplete";
import { globalCompletion } from "@codemirror/lang-python";
import type { Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

import { announce } from "../../web/frontend/announce";
import { say } from "../../web/frontend/strings";
import type { Introspector } from "./introspection";

const AFTER_A_NAME = /(?:(?<![\p{L}\p{N}_])[\p{L}_][\p{L}\p{N}_]*|\.)$/u;
const SAYS_LITTLE = new Set(["", "attribute", "variable", "instance"]);
const NAME_START = /[\p{L}\p{N}_]*$/u;
const NAME = /^[\p{L}\p{N}_]*$/u;

/** Whether the cursor is after a name or a dot. */
export function isAfterName(view: EditorView): boolean {
  const { main } = view.state.selection;
  const line = view.state.doc.lineAt(main.head);
  return main.empty && AFTER_A_NAME.test(line.text.slice(0, main.head - line.from));
}

/** Starts completion if the cursor is after a name or a dot. */
export function complete(view: EditorView): boolean {
  return isAfterName(view) && startCompletion(view);
}

export function completion(introspector: Introspector): Extension {
  const source = async (context: CompletionContext): Promise<CompletionResult | null> => {
    const { state, pos, view } = context;
    const code = state.doc.toString();
    const answer = await introspector.ask({ kind: "complete", code, cursor: pos });
    if (context.aborted) return null;
    const line = state.doc.lineAt(pos);
    const before = line.text.slice(0, pos - line.from);
    const written = NAME_START.exec(before)?.[0] ?? "";
    const matches = answer?.matches ?? [];
    // The kernel may complete more than a name, such as the path of a file; then the rest does not belong with it.
    const from = matches.length ? (answer?.start ?? pos) : pos - written.length;
    const options = matches.map(
      ({ text, kind }): Completion => (SAYS_LITTLE.has(kind) ? { label: text } : { label: text, detail: kind }),
    );
    if (from === pos - written.length) {
      const names = new Set(matches.map(({ text }) => text));
      for (const name of [...introspector.known(before, code), ...keywords(context, before, written)]) {
        if (!names.has(name)) options.push({ label: name });
        names.add(name);
      }
    }
    if (!options.length) announce(say("editor.nothingToComplete"));
    const [only] = options;
    if (view && only && options.length === 1) {
      view.dispatch({
        changes: { from, to: pos, insert: only.label },
        selection: { anchor: from + only.label.length },
        annotations: pickedCompletion.of(only),
        userEvent: "input.complete",
      });
      return null;
    }
    return options.length ? { from, options, validFor: NAME } : null;
  };
  return autocompletion({
    override: [source],
    activateOnTyping: false,
    interactionDelay: 0,
    icons: false,
    maxRenderedOptions: 200,
  });
}

/** Python's keywords and built-in names, which CodeMirror knows. */
function keywords(context: CompletionContext, before: string, written: string): string[] {
  if (before.endsWith(`.${written}`)) return [];
  const found = globalCompletion(context) as CompletionResult | null;
  const labels = (found?.options ?? []).map(({ label }) => label);
  return [...new Set(labels)].filter((label) => NAME.test(label) && label.startsWith(written) && label !== written);
}
