/** A set with a maximum size: adding to a full set removes the oldest item. */

export class LruSet<T> {
  private readonly kept = new Set<T>();

  constructor(private readonly most: number) {}

  /** Adds an item as the newest. Returns the item that was removed, if any. */
  add(thing: T): T | undefined {
    this.kept.delete(thing);
    this.kept.add(thing);
    if (this.kept.size <= this.most) return undefined;
    const [oldest] = this.kept;
    this.kept.delete(oldest as T);
    return oldest;
  }

  drop(thing: T | undefined): void {
    if (thing !== undefined) this.kept.delete(thing);
  }

  clear(): void {
    this.kept.clear();
  }
}
