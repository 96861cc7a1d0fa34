/** The last few of many: whoever comes in beyond the bound puts the oldest out. */

export class LruSet<T> {
  private readonly kept = new Set<T>();

  constructor(private readonly most: number) {}

  /** Takes it in as the newest; who has to go for it is the answer. */
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
