/**
 * A press, from the moment that the mouse button or a finger is down until the click has happened. If a link moved in
 * between, the browser would send no click, and the press would do nothing. `Press` lets fragments wait until it is over;
 * `setUpPresses` clicks what was pressed if it was moved all the same, by a picture, an editor or a fragment just shown.
 */

/** The click of a tap follows the release. */
const CLICK_MS = 50;
/** A longer press selects text or drags something. */
const LONGEST_MS = 2_000;
/** From press to release, in CSS pixels: a pointer that is further away drags something, or left it on purpose. */
const MAX_DISTANCE_PX = 5;
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
  let pressed: { element: HTMLElement; place: DOMRect; down: PointerEvent } | null = null;
  const forget = (): void => {
    pressed = null;
  };
  const begin = (down: PointerEvent): void => {
    const element = (down.target as Element).closest<HTMLElement>(PRESSABLE);
    const modified = down.ctrlKey || down.metaKey || down.shiftKey || down.altKey;
    const counts = element && down.isPrimary && down.button === 0 && !modified;
    pressed = counts ? { element, place: element.getBoundingClientRect(), down } : null;
  };
  const end = (up: PointerEvent): void => {
    if (!pressed || up.pointerId !== pressed.down.pointerId) return;
    const { element, place, down } = pressed;
    forget();
    if (element.contains(up.target as Node) || up.timeStamp - down.timeStamp > LONGEST_MS) return;
    if (Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY) > MAX_DISTANCE_PX) return;
    const { left, top } = element.getBoundingClientRect();
    if (left === place.left && top === place.top) return; // it is the pointer that left it
    setTimeout(() => {
      // The browser's own click, on what contains both, comes first; it may have closed something.
      if (element.checkVisibility({ visibilityProperty: true }) && !element.closest("[inert]")) element.click();
    });
  };
  addEventListener("pointerdown", begin, { capture: true });
  addEventListener("pointerup", end, { capture: true });
  addEventListener("pointercancel", forget, { capture: true });
  addEventListener("wheel", forget, { capture: true, passive: true }); // the reader moved it
}
