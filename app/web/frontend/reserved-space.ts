/**
 * Space for what a page shows only after its first paint: what the server does not know, or sends later.
 *
 * When a page is left, its heights are stored for this tab. When it is opened there again, in a window of the same
 * width, the space is kept from the first paint on, so that nothing moves when its content is back.
 */

const KEY = "lockstep:space:";

interface Stored {
  width: number;
  css: string;
}

/** Stores style rules that keep the space; they have to stop applying once the content is there. */
export function storeSpace(rules: string[]): void {
  const stored: Stored = { width: window.innerWidth, css: rules.join("\n") };
  try {
    if (rules.length) window.sessionStorage.setItem(key(), JSON.stringify(stored));
    else window.sessionStorage.removeItem(key());
  } catch {
    // Storage is full or denied: the page moves as it loads.
  }
}

/** Applies the stored rules. Called before the first paint. */
export function reserveSpace(): void {
  try {
    const stored = JSON.parse(window.sessionStorage.getItem(key()) ?? "null") as Stored | null;
    if (stored?.width !== window.innerWidth) return;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(stored.css);
    document.adoptedStyleSheets.push(sheet);
  } catch {
    // Storage is denied.
  }
}

/** A rule that gives `selector` at least the height of `element`; `more` are further declarations. */
export function heightRule(selector: string, element: HTMLElement, more = ""): string {
  return `${selector} { min-height: ${element.getBoundingClientRect().height}px; ${more} }`;
}

function key(): string {
  return KEY + window.location.pathname;
}
