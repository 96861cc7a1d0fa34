/** Suggests people to mention after an @: a short list below the field, or above it. Arrows select, Enter inserts, Escape closes. */

import { make } from "../../web/frontend/element";
import { language } from "../../web/frontend/strings";

interface Person {
  handle: string;
  name: string;
}

const BEGUN = /(?:^|[^\w@/.-])@([a-z0-9-]{0,38})$/i;
const PATIENCE_MS = 150;
/** Between the field and the list (px). */
const GAP = 2;

export function setUpMentions(form: HTMLFormElement, field: HTMLTextAreaElement): void {
  const list = make<HTMLUListElement>("ul.suggestions", { role: "listbox", id: `${field.id}-people`, hidden: true });
  list.setAttribute("aria-label", "@");
  field.after(list);
  field.setAttribute("aria-autocomplete", "list");
  let waiting = 0;
  let chosen = 0;

  const close = (): void => {
    list.hidden = true;
    list.replaceChildren();
    field.removeAttribute("aria-activedescendant");
    field.removeAttribute("aria-controls");
  };
  const mark = (): void => {
    for (const [i, item] of [...list.children].entries()) item.setAttribute("aria-selected", String(i === chosen));
    field.setAttribute("aria-activedescendant", list.children[chosen]?.id ?? "");
  };
  const take = (handle: string): void => {
    const end = field.selectionStart;
    const begun = BEGUN.exec(field.value.slice(0, end));
    if (begun) field.setRangeText(`@${handle} `, end - (begun[1] ?? "").length - 1, end, "end");
    close();
    field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  /** Below the field or, if there is no room in the window, above it. */
  const place = (): void => {
    const { top, bottom } = field.getBoundingClientRect();
    const height = window.visualViewport?.height ?? window.innerHeight;
    const above = bottom + GAP + list.offsetHeight > height && top > list.offsetHeight + GAP;
    const y = above ? -list.offsetHeight - GAP : field.offsetHeight + GAP;
    list.style.top = `${field.offsetTop + y}px`;
  };
  const show = (people: Person[]): void => {
    if (!people.length) {
      close();
      return;
    }
    chosen = 0;
    list.replaceChildren(
      ...people.map(({ handle, name }, i) => {
        const item = make(
          "li",
          { role: "option", id: `${field.id}-person-${i}` },
          `@${handle} `,
          make("span", {}, name),
        );
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          take(handle);
        });
        item.dataset.handle = handle;
        return item;
      }),
    );
    list.hidden = false;
    place();
    field.setAttribute("aria-controls", list.id);
    mark();
  };
  const look = async (begins: string): Promise<void> => {
    const asked = new URLSearchParams({ lesson: field.dataset.lesson ?? "", begins: begins.toLowerCase() });
    for (const name of ["cell", "thread"]) {
      const value = form.querySelector<HTMLInputElement>(`input[name=${name}]`)?.value;
      if (value) asked.set(name, value);
    }
    const answer = await fetch(`/${language()}/comment-handles?${asked}`, { credentials: "same-origin" }).catch(
      () => null,
    );
    const still = BEGUN.exec(field.value.slice(0, field.selectionStart))?.[1] === begins;
    if (answer?.ok && still) show((await answer.json()) as Person[]);
  };

  const typed = (): void => {
    window.clearTimeout(waiting);
    const begun = BEGUN.exec(field.value.slice(0, field.selectionStart));
    if (!begun) {
      close();
      return;
    }
    waiting = window.setTimeout(() => void look(begun[1] ?? ""), PATIENCE_MS);
  };

  field.addEventListener("input", typed);
  if (document.activeElement === field) typed(); // an @ that was typed before this script was there
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return;
    const count = list.children.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
      mark();
    } else if (event.key === "Enter" || event.key === "Tab") {
      take((list.children[chosen] as HTMLElement).dataset.handle ?? "");
    } else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
}
