import assert from "node:assert/strict";
import { test } from "node:test";

import { Drafts, digest, moveDrafts } from "../../../../../app/runs/frontend/drafts";

function storage(): Pick<Storage, "getItem" | "setItem" | "removeItem"> & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}

function draftsOf(lesson: string, place: ConstructorParameters<typeof Drafts>[1], account: string | null = ""): Drafts {
  return new Drafts(lesson, place, () => account);
}

test("a draft is found again, for its own lesson and cell only", () => {
  const place = storage();
  draftsOf("c/one", place).keep("fit", "x = 1", "x = 2");
  assert.deepEqual(draftsOf("c/one", place).find("fit", "x = 1"), { code: "x = 2", outdated: false });
  assert.equal(draftsOf("c/one", place).find("other", "x = 1"), null);
  assert.equal(draftsOf("c/two", place).find("fit", "x = 1"), null);
});

test("a draft is found again by its own account only", () => {
  const place = storage();
  draftsOf("c/one", place, "ada").keep("fit", "x = 1", "x = 2");
  assert.equal(draftsOf("c/one", place, "bob").find("fit", "x = 1"), null);
  assert.equal(draftsOf("c/one", place, "").find("fit", "x = 1"), null);
  assert.equal(draftsOf("c/one", place, "ada").find("fit", "x = 1")?.code, "x = 2");
});

test("a page whose account has left reads and writes no draft", () => {
  const place = storage();
  draftsOf("c/one", place, null).keep("fit", "x = 1", "x = 2");
  assert.equal(place.kept.size, 0);
  assert.equal(draftsOf("c/one", place, null).find("fit", "x = 1"), null);
});

test("code equal to the original is no draft", () => {
  const place = storage();
  const drafts = draftsOf("c/one", place);
  drafts.keep("fit", "x = 1", "x = 2");
  drafts.keep("fit", "x = 1", "x = 1");
  assert.equal(place.kept.size, 0);
});

test("where the original changed, the text is kept and said to be outdated", () => {
  const drafts = draftsOf("c/one", storage());
  drafts.keep("fit", "x = 1", "x = 2");
  assert.deepEqual(drafts.find("fit", "x = 10"), { code: "x = 2", outdated: true });
});

test("what is broken or forbidden is no draft and no error", () => {
  const place = storage();
  place.kept.set("lockstep:draft::c/one:fit", "{broken");
  assert.equal(draftsOf("c/one", place).find("fit", ""), null);
  draftsOf("c/one", null).keep("fit", "a", "b");
  const full = {
    ...place,
    setItem: () => {
      throw new Error("full");
    },
  };
  draftsOf("c/one", full).keep("fit", "a", "b");
});

test("a digest tells near texts apart", () => {
  const texts = ["", "a", "b", "ab", "ba", "a ", " a", "lr = 0.1", "lr = 0.2"];
  assert.equal(new Set(texts.map(digest)).size, texts.length);
  assert.match(digest("a"), /^[0-9a-f]{16}$/);
});

test("a draft says which version at the server it is, until it is changed", () => {
  const drafts = draftsOf("c/one", storage());
  drafts.mark("fit", 1, true);
  assert.equal(drafts.read("fit"), null);
  drafts.keep("fit", "x = 1", "x = 2");
  drafts.mark("fit", 3, true);
  assert.deepEqual(drafts.read("fit"), { digest: digest("x = 1"), code: "x = 2", version: 3, sent: true });
  drafts.keep("fit", "x = 1", "x = 3");
  assert.deepEqual(drafts.read("fit"), { digest: digest("x = 1"), code: "x = 3" });
});

test("whoever shares drafts is told of each that is kept", () => {
  const drafts = draftsOf("c/one", storage());
  const told: string[] = [];
  drafts.kept = (cell) => void told.push(cell);
  drafts.keep("fit", "x = 1", "x = 2");
  drafts.keep("fit", "x = 1", "x = 1");
  assert.deepEqual(told, ["fit", "fit"]);
});

test("drafts follow a lesson and a cell that were renamed, and replace none", () => {
  const kept = storage();
  const place = { ...kept, key: (i: number) => [...kept.kept.keys()][i] ?? null, length: 0 };
  Object.defineProperty(place, "length", { get: () => kept.kept.size });
  draftsOf("c/old", place, "ada").keep("fit", "x = 1", "x = 2");
  draftsOf("c/old", place, "ada").keep("plot", "y = 1", "y = 2");
  draftsOf("c/old", place, "bob").keep("fit", "x = 1", "x = 3");
  draftsOf("c/older", place, "ada").keep("plot", "y = 1", "y = 4");
  draftsOf("c/old-one", place, "ada").keep("fit", "x = 1", "x = 5");
  draftsOf("c/split", place, "ada").keep("save", "x = 1", "x = 6");
  draftsOf("c/split", place, "ada").keep("fit", "x = 1", "x = 7");

  const cells = new Map([
    ["fit", "train"],
    ["split#save", "save"],
    ["split#fit", "train"],
  ]);
  moveDrafts(place, "ada", "c/new", ["c/old", "c/older"], cells);
  const found = draftsOf("c/new", place, "ada");
  assert.equal(found.find("train", "x = 1")?.code, "x = 2");
  assert.equal(found.find("fit", "x = 1"), null);
  assert.equal(found.find("plot", "y = 1")?.code, "y = 2");
  assert.equal(draftsOf("c/old", place, "bob").find("fit", "x = 1")?.code, "x = 3");
  assert.equal(draftsOf("c/old-one", place, "ada").find("fit", "x = 1")?.code, "x = 5");
  assert.equal(found.find("save", "x = 1")?.code, "x = 6", "it has moved here from another lesson");
  assert.equal(draftsOf("c/split", place, "ada").find("fit", "x = 1")?.code, "x = 7");
});
