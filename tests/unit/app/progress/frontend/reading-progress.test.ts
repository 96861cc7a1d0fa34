import assert from "node:assert/strict";
import { test } from "node:test";

import {
  merged,
  type ReadingProgress,
  ReadingProgressStore,
} from "../../../../../app/progress/frontend/reading-progress";

function storage(): Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length"> {
  const kept = new Map<string, string>();
  return {
    get length() {
      return kept.size;
    },
    key: (i) => [...kept.keys()][i] ?? null,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}

function mark(
  opened_at: number,
  last_seen_at = opened_at,
  end_reached_at: number | null = null,
  anchor = "",
): ReadingProgress {
  return { lesson: "c/one", opened_at, last_seen_at, end_reached_at, anchor };
}

test("a mark outlives its page", () => {
  const place = storage();
  new ReadingProgressStore(place).add(mark(1, 5, null, "cell-fit"));
  assert.deepEqual(new ReadingProgressStore(place).find("c/one"), mark(1, 5, null, "cell-fit"));
  assert.equal(new ReadingProgressStore(place).find("c/two"), null);
});

test("the earliest opening and the earliest end stay, and the latest anchor", () => {
  const [early, late] = [mark(1, 5, 4, "start"), mark(3, 9, 8, "cell-fit")];
  const both = mark(1, 9, 4, "cell-fit");
  assert.deepEqual(merged(early, late), both);
  assert.deepEqual(merged(late, early), both);
  assert.deepEqual(merged(both, both), both);
});

test("an end once reached is not lost by opening the lesson again", () => {
  assert.equal(merged(mark(1, 2, 2), mark(5, 6)).end_reached_at, 2);
});

test("marks that were kept before two fields were renamed are read", () => {
  const place = storage();
  place.setItem("lockstep:mark:c/one", '{"opened_at": 1, "seen_at": 5, "end_reached_at": 4, "place": "cell-fit"}');
  assert.deepEqual(new ReadingProgressStore(place).find("c/one"), mark(1, 5, 4, "cell-fit"));
});

test("two tabs with one lesson write what both know", () => {
  const place = storage();
  const [one, two] = [new ReadingProgressStore(place), new ReadingProgressStore(place)];
  one.add(mark(1, 2, null, "start"));
  two.add(mark(3, 4, 4, "cell-fit"));
  one.add(mark(1, 5, null, "middle"));
  assert.deepEqual(new ReadingProgressStore(place).find("c/one"), mark(1, 5, 4, "middle"));
});

test("only new information is sent", () => {
  const marks = new ReadingProgressStore(storage());
  assert.equal(marks.add(mark(1)), true);
  assert.equal(marks.add(mark(1, 2)), false);
  assert.equal(marks.add(mark(1, 3, null, "cell-fit")), true);
  assert.equal(marks.add(mark(1, 4, 4, "cell-fit")), true);
  assert.equal(marks.add(mark(1, 5, 5, "cell-fit")), false);
  assert.equal(marks.add(mark(1, 3_600_000)), true);
});

test("all marks are told to whoever has not heard of them", () => {
  const place = storage();
  const marks = new ReadingProgressStore(place);
  marks.add(mark(1));
  marks.add({ ...mark(2), lesson: "c/two" });
  assert.deepEqual(
    marks
      .all()
      .map(({ lesson }) => lesson)
      .sort(),
    ["c/one", "c/two"],
  );
  assert.equal(marks.isSynced("ada"), false);
  marks.markSynced("ada");
  assert.equal(new ReadingProgressStore(place).isSynced("ada"), true);
  assert.equal(new ReadingProgressStore(place).isSynced("grace"), false);
});

test("after a sign-out nothing of the one before is left for the next", () => {
  const place = storage();
  const marks = new ReadingProgressStore(place);
  marks.add(mark(1));
  marks.leave();
  assert.equal(new ReadingProgressStore(place).all().length, 1, "a stranger's marks stay until a server has them");
  marks.markSynced("ada");
  marks.leave();
  assert.deepEqual(marks.all(), []);
  assert.deepEqual(new ReadingProgressStore(place).all(), []);
  assert.equal(new ReadingProgressStore(place).isSynced("ada"), false);
});

test("what another program left under our name is no mark", () => {
  const place = storage();
  place.setItem("lockstep:mark:c/one", '{"opened_at": "yesterday"}');
  place.setItem("lockstep:mark:c/two", "not JSON");
  assert.deepEqual(new ReadingProgressStore(place).all(), []);
});

test("without storage marks last as long as the page", () => {
  const marks = new ReadingProgressStore(null);
  marks.add(mark(1, 2, null, "start"));
  assert.deepEqual(marks.all(), [mark(1, 2, null, "start")]);
});
