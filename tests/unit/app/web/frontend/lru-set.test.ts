import assert from "node:assert/strict";
import { test } from "node:test";

import { LruSet } from "../../../../../app/web/frontend/lru-set";

test("of many, the last few stay", () => {
  const latest = new LruSet<number>(20);
  const gone = Array.from({ length: 15_000 }, (_, i) => latest.add(i)).filter((one) => one !== undefined);
  assert.equal(gone.length, 14_980);
  assert.equal(gone.at(-1), 14_979);
});

test("one that comes again is the newest, and one that was dropped makes room", () => {
  const latest = new LruSet<string>(2);
  latest.add("a");
  latest.add("b");
  assert.equal(latest.add("a"), undefined);
  assert.equal(latest.add("c"), "b");
  latest.drop("a");
  assert.equal(latest.add("d"), undefined);
  latest.clear();
  assert.equal(latest.add("e"), undefined);
});
