/**
 * Rich output: the best representation of a display that is safe to show.
 *
 * No HTML that a learner's code writes becomes part of this page. Pictures are `<img>` elements with data URLs, HTML and
 * interactive plots are in sandboxed frames with their own URLs, tables of pandas are rebuilt from their text, the server
 * converts Markdown and LaTeX, and everything else is text.
 */

import { make } from "../../web/frontend/element";
import { say } from "../../web/frontend/strings";
import { displayText } from "./api";
import { knownHtml } from "./display-html";
import type { DisplayItem } from "./transcript";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** The type of pictures from Lockstep's helpers, which this page draws itself (see `pictures.ts`). */
const DRAWN = "application/vnd.lockstep.picture+json";
const PLOTS = [
  "application/vnd.plotly.v1+json",
  "application/vnd.vegalite.v5+json",
  "application/vnd.vegalite.v6+json",
];
/** The height of a plot before it says its own, and the limits of what it may say. */
const [PLOT_PX, LEAST_PLOT_PX, MOST_PLOT_PX] = [420, 60, 1000];
const LONGEST_TEXT = 200_000;
/** The height of a table row and of the margins around the table, in the style of `runs/display.html`. */
const ROW_PX = 32;
const FRAME_MARGIN_PX = 24;

/** The element for a display of run `run`. Its size is known before its content, so that nothing jumps. */
export function showDisplay(item: DisplayItem, run: string, cell: string): HTMLElement {
  const { data } = item.event;
  const text = asString(data["text/plain"]);
  const url = `/runs/${run}/displays/${item.seq}`;
  if (data[DRAWN] !== undefined) return drawn(data[DRAWN], block("display.text", text));
  for (const type of PICTURES) {
    const content = asString(data[type]);
    if (content) return picture(type, content.replace(/\s+/g, ""), text, cell);
  }
  const svg = asString(data["image/svg+xml"]);
  if (svg) return picture("image/svg+xml", base64(svg), text, cell);
  if (PLOTS.some((type) => data[type] !== undefined)) return plot(`${url}/plot`, cell);
  const html = asString(data["text/html"]);
  if (html) return knownHtml(html, say("output.html", { cell })) ?? frame(html, url, cell);
  const marked = asString(data["text/markdown"]) || asString(data["text/latex"]);
  if (marked) return converted(block("display.text", marked), `${url}/text`);
  if (data["application/json"] !== undefined) {
    return block("display.json", JSON.stringify(data["application/json"], null, 2));
  }
  return block("display.text", text || JSON.stringify(data));
}

/** Shows Markdown or LaTeX as it was written until the server has converted it, and for good if it cannot. */
function converted(written: HTMLElement, url: string): HTMLElement {
  const place = make("div.display.rich-text.prose", {}, written);
  void displayText(url).then(
    (html) => place.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes),
    () => undefined,
  );
  return place;
}

/** A plot in a frame of its own origin, without a network; the script in it is this site's. */
function plot(src: string, cell: string): HTMLElement {
  const title = say("output.plot", { cell });
  const element = themedFrame(src, { sandbox: "allow-scripts", title, height: PLOT_PX });
  const resize = ({ source, data }: MessageEvent): void => {
    if (!element.isConnected && element.dataset.seen) window.removeEventListener("message", resize);
    if (source !== element.contentWindow || source === null) return;
    element.dataset.seen = "";
    const px = Number((data as { plotHeight?: unknown } | null)?.plotHeight);
    if (px > 0) element.height = String(Math.ceil(Math.min(MOST_PLOT_PX, Math.max(LEAST_PLOT_PX, px))));
  };
  window.addEventListener("message", resize);
  return make("div.display.html.plot", {}, element);
}

/** Shows the text until the script that draws is loaded, and for good if the picture cannot be drawn. */
function drawn(content: unknown, words: HTMLElement): HTMLElement {
  const place = make("div.display", {}, words);
  void import("./pictures").then(
    ({ drawPicture }) => words.replaceWith(drawPicture(content) ?? words),
    () => undefined,
  );
  return place;
}

function picture(type: string, content: string, text: string, cell: string): HTMLElement {
  const image = make<HTMLImageElement>("img", {
    alt: text && !text.startsWith("<") ? text : say("output.picture", { cell }),
    decoding: "async",
  });
  const size = type === "image/png" ? pngSize(content) : null;
  if (size) [image.width, image.height] = size;
  image.src = `data:${type};base64,${content}`;
  return make("figure.display.picture", {}, image);
}

function frame(html: string, url: string, cell: string): HTMLElement {
  const rows = html.match(/<tr[\s>]/gi)?.length ?? 0;
  const height = rows
    ? Math.min(420, rows * ROW_PX + FRAME_MARGIN_PX)
    : Math.min(420, 90 + Math.floor(html.length / 40));
  const element = themedFrame(url, { sandbox: "", title: say("output.html", { cell }), height });
  return make("div.display.html", {}, element);
}

/** A frame of a document in the page's theme. Browsers do not tell a document of another origin which one that is. */
function themedFrame(url: string, attributes: Record<string, string | number>): HTMLIFrameElement {
  if (!watching) watchTheme();
  return make<HTMLIFrameElement>("iframe", { ...attributes, "data-url": url, src: `${url}?theme=${theme()}` });
}

let watching = false;

function theme(): string {
  return (
    document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")
  );
}

function watchTheme(): void {
  watching = true;
  const change = (): void => {
    for (const frame of document.querySelectorAll<HTMLIFrameElement>("iframe[data-url]")) {
      const src = `${frame.dataset.url}?theme=${theme()}`;
      if (frame.getAttribute("src") !== src) frame.src = src;
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", change);
  new MutationObserver(change).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

/** Replaces a live frame with a link; leaves other elements unchanged. */
export function quieten(element: HTMLElement): void {
  const live = element.querySelector("iframe");
  live?.replaceWith(make("a", { href: live.getAttribute("src") ?? "", target: "_blank", rel: "noopener" }, live.title));
}

function block(selector: string, text: string): HTMLElement {
  const shown = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)} …` : text;
  return make(`pre.${selector}`, {}, shown);
}

function asString(value: unknown): string {
  if (Array.isArray(value)) return value.join("");
  return typeof value === "string" ? value : "";
}

function base64(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** The width and height in the first 24 bytes of a PNG. */
export function pngSize(content: string): [number, number] | null {
  try {
    const head = atob(content.slice(0, 32));
    if (!head.startsWith("\x89PNG")) return null;
    const at = (i: number): number => [0, 1, 2, 3].reduce((sum, k) => sum * 256 + head.charCodeAt(i + k), 0);
    return [at(16), at(20)];
  } catch {
    return null;
  }
}
