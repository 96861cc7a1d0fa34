/**
 * Sorts items into lanes: the cell's own output goes above the lanes if it came before any lane, otherwise below them.
 * Each part is in order. Pure.
 */

import { type Item, laneOf } from "./transcript";

/** Programs can invent lane names; all beyond this number share the last lane. */
export const MOST_LANES = 16;
export const OTHER_LANES = "…";

const ROLES = ["coordinator", "chief", "worker", "ps", "evaluator", "replica"];

export class LaneLayout {
  readonly above: Item[] = [];
  readonly below: Item[] = [];
  /** By name, in order of arrival. */
  readonly lanes = new Map<string, Item[]>();
  private taken = 0;

  /** Adds the new items of the list, which only grows. Returns the lanes that have changed. */
  take(items: Item[]): Set<string> {
    const grown = new Set<string>();
    for (; this.taken < items.length; this.taken++) {
      const item = items[this.taken] as Item;
      const lane = laneOf(item);
      if (lane === null) (this.lanes.size ? this.below : this.above).push(item);
      else grown.add(this.put(lane, item));
    }
    return grown;
  }

  private put(lane: string, item: Item): string {
    const name = this.lanes.has(lane) || this.lanes.size < MOST_LANES - 1 ? lane : OTHER_LANES;
    const items = this.lanes.get(name);
    if (items) items.push(item);
    else this.lanes.set(name, [item]);
    return name;
  }
}

/** Sorts lane names by role: coordinator, chief, workers, servers, evaluator, replicas, everything else. */
export function sortLanes(names: Iterable<string>): string[] {
  return [...names]
    .map((name, arrived) => ({ name, arrived, rank: rank(name) }))
    .sort((a, b) => a.rank.map((n, i) => n - (b.rank[i] as number)).find(Boolean) ?? a.arrived - b.arrived)
    .map(({ name }) => name);
}

/** `worker 1` comes before `worker 1 · replica 0`. */
function rank(name: string): [role: number, number: number, replica: number] {
  const [, role, number, replica] = /^([a-z]+)(?: (\d+))?(?: · replica (\d+))?$/.exec(name) ?? [];
  const place = ROLES.indexOf(role ?? "");
  return place < 0 ? [ROLES.length, 0, 0] : [place, Number(number ?? 0), Number(replica ?? -1)];
}
