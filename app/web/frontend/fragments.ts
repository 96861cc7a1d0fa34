/**
 * When htmx may show a fragment that has arrived: once its style sheets are there, so that it does not move when they
 * come, and while nothing is pressed.
 */

import { Press } from "./press";

/** After that, a fragment is shown without its style sheet. */
const LONGEST_MS = 3_000;

/** A `fetch` whose text arrives once it may be shown. */
export function shownWhen(request: typeof fetch, ready: (text: string) => Promise<unknown>): typeof fetch {
  return async (input, init) => {
    const response = await request(input, init);
    const read = response.text.bind(response);
    response.text = async () => {
      const text = await read();
      await ready(text);
      return text;
    };
    return response;
  };
}

export function setUpFragments(): void {
  const press = new Press();
  addEventListener("pointerdown", () => press.begin(), { capture: true });
  for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => press.release(), { capture: true });
  const ready = async (text: string): Promise<void> => {
    await Promise.all(styleSheets(text).map(loadStyleSheet));
    await press.ended();
  };
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = (event as CustomEvent<{ ctx: { fetch?: typeof fetch } }>).detail;
    ctx.fetch = shownWhen(ctx.fetch ?? ((input, init) => fetch(input, init)), ready);
  });
}

function styleSheets(fragment: string): string[] {
  if (!fragment.includes('rel="stylesheet"')) return [];
  const links = new DOMParser().parseFromString(fragment, "text/html").querySelectorAll("link[rel=stylesheet]");
  return Array.from(links, (link) => link.getAttribute("href") ?? "");
}

const loading = new Map<string, Promise<void>>();

/** Resolves when the style sheet applies to the page, or cannot be loaded. */
function loadStyleSheet(href: string): Promise<void> {
  const known = loading.get(href);
  if (known) return known;
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
  const loaded = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, LONGEST_MS);
    const end = (): void => {
      clearTimeout(timer);
      resolve();
    };
    link.addEventListener("load", end);
    link.addEventListener("error", () => {
      loading.delete(href);
      link.remove();
      end();
    });
  });
  loading.set(href, loaded);
  document.head.append(link);
  return loaded;
}
