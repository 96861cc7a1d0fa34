/**
 * A cell's code before its editor has loaded.
 *
 * A click or Tab into the code starts loading the editor. Until then, the browser's own editing accepts what the
 * learner types, so that no key is lost; the editor then takes over the text, the selection and the focus.
 */

export interface PlainCodeEvents {
  focused(): void;
  changed(code: string): void;
  run(): void;
  runAndMoveOn(): void;
  check(): boolean;
}

export interface Selected {
  anchor: number;
  head: number;
}

export class PlainCode {
  /** Whether the learner clicked into the code, rather than using Tab. */
  clicked = false;
  /** The text before the learner's first change; null without a change. */
  before: string | null = null;
  private text: string;
  private pressed = false;
  private composing = false;
  private look: () => void = () => undefined;

  constructor(
    readonly pre: HTMLElement,
    private readonly events: PlainCodeEvents,
  ) {
    this.text = pre.textContent;
    pre.addEventListener("focus", () => this.focused());
    pre.addEventListener("keydown", (event) => this.key(event));
    pre.addEventListener("input", () => this.changed());
    pre.addEventListener("pointerdown", () => this.press());
    pre.addEventListener("compositionstart", () => (this.composing = true));
    pre.addEventListener("compositionend", () => {
      this.composing = false;
      this.look();
    });
  }

  get hasFocus(): boolean {
    return document.activeElement === this.pre;
  }

  /** The selection as offsets into the text; the start if the selection is elsewhere. */
  get selection(): Selected {
    const { anchorNode, anchorOffset, focusNode, focusOffset } = document.getSelection() ?? {};
    return { anchor: this.offset(anchorNode, anchorOffset), head: this.offset(focusNode, focusOffset) };
  }

  /** Focuses this code. */
  focus(): void {
    this.pre.focus({ preventScroll: true });
  }

  /** Shows other code, without counting as a change by the learner. */
  set(code: string): void {
    this.text = code;
    this.before = null;
    (this.pre.querySelector("code") ?? this.pre).textContent = code;
    this.pre.dataset.lines = String(code.replace(/\n$/, "").split("\n").length); // its height, see cell.css
  }

  /**
   * Resolves when the editor can take over: not while the pointer is pressed, which may select text, nor during the
   * composition of a character, and always in a separate task, so that a click has placed the cursor.
   */
  ready(): Promise<void> {
    return new Promise((resolve) => {
      this.look = () => {
        setTimeout(() => {
          if (!this.pressed && !this.composing) resolve();
        });
      };
      this.look();
    });
  }

  private focused(): void {
    try {
      this.pre.contentEditable = "plaintext-only";
      this.pre.role = "textbox";
      this.pre.ariaMultiLine = "true";
      for (const name of ["autocapitalize", "autocorrect"]) this.pre.setAttribute(name, "off");
      this.pre.setAttribute("aria-describedby", "editor-help");
      this.pre.spellcheck = false;
      this.pre.translate = false;
    } catch {
      // An older browser without plain-text editing: typing works once the editor is loaded.
    }
    // A click places the cursor itself; after Tab or a script, the selection may still be elsewhere.
    const selection = document.getSelection();
    if (!this.pressed && !this.pre.contains(selection?.anchorNode ?? null)) selection?.collapse(this.pre, 0);
    this.events.focused();
  }

  private key(event: KeyboardEvent): void {
    if (event.key !== "Enter" || event.isComposing) return;
    if (event.altKey && this.events.check()) event.preventDefault();
    if (event.altKey || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (event.shiftKey) this.events.runAndMoveOn();
    else this.events.run();
  }

  private changed(): void {
    this.before ??= this.text;
    this.text = textIn(this.pre);
    this.events.changed(this.text);
  }

  private press(): void {
    this.clicked = this.pressed = true;
    const released = (): void => {
      for (const event of ["pointerup", "pointercancel"]) window.removeEventListener(event, released);
      this.pressed = false;
      this.look();
    };
    for (const event of ["pointerup", "pointercancel"]) window.addEventListener(event, released);
  }

  private offset(node: Node | null | undefined, offset = 0): number {
    if (!node || !this.pre.contains(node)) return 0;
    const before = document.createRange();
    before.selectNodeContents(this.pre);
    before.setEnd(node, offset);
    return textIn(before.cloneContents()).length;
  }
}

/** The text; a line break at the very end only keeps the last line open. */
function textIn(root: Node): string {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ALL, (node) =>
    node.hasChildNodes() ? NodeFilter.FILTER_SKIP : NodeFilter.FILTER_ACCEPT,
  );
  const leaves: Node[] = [];
  while (walker.nextNode()) leaves.push(walker.currentNode);
  if (leaves.at(-1) instanceof HTMLBRElement) leaves.pop();
  return leaves.map((leaf) => (leaf instanceof HTMLBRElement ? "\n" : (leaf.textContent ?? ""))).join("");
}
