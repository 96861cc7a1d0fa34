/**
 * For a form or a button whose script is a chunk of its own: what is pressed before the script is there is held, and done
 * once it is. If it cannot be loaded, that is done without it.
 */

interface Held {
  /** The forms and buttons of the script, as selectors. */
  forms?: string;
  buttons?: string;
}

/** Returns a function that loads the script; it can be called again. */
export function lateScript(load: () => Promise<void>, { forms, buttons }: Held): () => void {
  const held = new Set<HTMLElement>();
  let settled = false;
  let loading: Promise<void> | null = null;
  const start = (): Promise<void> => {
    loading ??= load().finally(() => {
      settled = true;
      loading = null;
    });
    return loading;
  };
  const hold = (event: Event, element: HTMLElement, again: () => void): void => {
    event.preventDefault();
    event.stopImmediatePropagation();
    if (held.has(element)) return;
    held.add(element);
    void start().finally(() => {
      held.delete(element);
      if (element.isConnected) again();
    });
  };
  if (forms)
    document.addEventListener(
      "submit",
      (event) => {
        const form = event.target as HTMLFormElement;
        if (!settled && form.matches(forms)) hold(event, form, () => form.requestSubmit(event.submitter));
      },
      { capture: true },
    );
  if (buttons)
    document.addEventListener(
      "click",
      (event) => {
        const button = (event.target as Element).closest<HTMLElement>(buttons);
        if (!settled && button) hold(event, button, () => button.click());
      },
      { capture: true },
    );
  return () => void start();
}
