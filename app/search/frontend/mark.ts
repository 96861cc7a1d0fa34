/** Marks what was searched for on the page, without changing its elements; Escape removes the marks. */

const MAX_MARKS = 500;
const SKIPPED = "script, style, svg, textarea, .cm-editor, [hidden]";

export function markWords(): void {
  const words = (new URLSearchParams(location.search).get("mark") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const main = document.getElementById("main");
  if (!main || !words.length || !("highlights" in CSS)) return;
  CSS.highlights.set("search", new Highlight(...ranges(main, words)));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) CSS.highlights.delete("search");
  });
}

function ranges(main: HTMLElement, words: string[]): Range[] {
  const found: Range[] = [];
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && found.length < MAX_MARKS; node = walker.nextNode()) {
    if (node.parentElement?.closest(SKIPPED)) continue;
    const text = (node.nodeValue ?? "").toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        if (at + word.length > (node.nodeValue ?? "").length) break; // lower case can be longer
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        found.push(range);
      }
    }
  }
  return found;
}
