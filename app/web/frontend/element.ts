/** Helpers for creating and finding elements. */

type Child = Node | string | null | undefined | false;

/** `make("p.note", {title}, "text")` creates an element with classes, attributes and children. */
export function make<T extends HTMLElement = HTMLElement>(
  selector: string,
  attributes: Record<string, string | number | boolean | null | undefined> = {},
  ...children: Child[]
): T {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => Boolean(child)));
  return element as T;
}

/** The element that a template must contain. */
export function need<T extends Element = HTMLElement>(root: ParentNode, selector: string): T {
  const found = root.querySelector<T>(selector);
  if (!found) throw new Error(`the page has no ${selector}`);
  return found;
}

/** The text with what is between two backticks as `<code>`, like `code_spans` on the server. */
export function codeSpans(text: string): (string | HTMLElement)[] {
  return text.split(/`([^`\n]+)`/).map((part, i) => (i % 2 ? make("code", {}, part) : part));
}
