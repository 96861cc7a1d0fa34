/**
 * A press, from the moment that the mouse button or a finger is down until the click has happened. If a link moved in
 * between, the browser would send no click, and the press would do nothing. `Press` lets fragments wait until it is over;
 * `setUpPresses` clicks what was pressed if it was moved all the same, by a picture, an editor or a fragment just shown.
 */

/** The click of a tap follows the release. */
const CLICK_MS = 50;
/** A longer press selects text or drags something. */
const LONGEST_MS = 2_000;
/** In CSS pixels: a pointer that moves further during a press drags, or leaves what it should not press after all. */
const LONGEST_WAY = 5;
const PRESSABLE = "button, summary, label, a[href]";

export class Press {
  private down: Promise<void> | null = null;
  private end: () => void = () => undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  begin(): void {
    this.endAfter(LONGEST_MS);
    this.down ??= new Promise((resolve) => {
      this.end = () => {
        this.down = null;
        resolve();
      };
    });
  }

  release(): void {
    if (this.down) this.endAfter(CLICK_MS);
  }

  /** Resolves when nothing is pressed. */
  async ended(): Promise<void> {
    await this.down;
  }

  private endAfter(delayMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.end(), delayMs);
  }
}

export function setUpPresses(): void {
  let pressed: { element: HTMLElement; down: PointerEvent } | null = null;
  const begin = (down: PointerEvent): void => {
    const element = (down.target as Element).closest<HTMLElement>(PRESSABLE);
    const plain =
      down.isPrimary && down.button === 0 && !(down.ctrlKey || down.metaKey || down.shiftKey || down.altKey);
    pressed = element && plain ? { element, down } : null;
  };
  const end = (up: PointerEvent): void => {
    const press = pressed;
    pressed = null;
    if (!press || press.element.contains(up.target as Node)) return;
    const way = Math.hypot(up.clientX - press.down.clientX, up.clientY - press.down.clientY);
    if (way > LONGEST_WAY || !press.element.checkVisibility()) return;
    setTimeout(() => press.element.click()); // after the click that the browser sends to what contains both
  };
  addEventListener("pointerdown", begin, { capture: true });
  addEventListener("pointerup", end, { capture: true });
  addEventListener("pointercancel", () => (pressed = null), { capture: true });
}
