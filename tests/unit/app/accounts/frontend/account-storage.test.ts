import assert from "node:assert/strict";
import { test } from "node:test";

import {
  accountIn,
  claimStorage,
  draftKey,
  type StorageArea,
} from "../../../../../app/accounts/frontend/account-storage";

const [ADA, BOB] = ["lockstep_account=ada", "theme=x; __Host-lockstep_account=bob"];
const [SIGNED_OUT, EXPIRED] = ["lockstep_account=signed-out", ""];
const DRAFT = (account: string): string => draftKey(account, "c/one", "fit");

function storage(...keys: string[]): StorageArea & { kept: Map<string, string> } {
  const kept = new Map(keys.map((key) => [key, `of ${key}`]));
  return {
    kept,
    get length() {
      return kept.size;
    },
    key: (i) => [...kept.keys()][i] ?? null,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}

/** The storage of a browser that Ada is signed in to, with all kinds of things in it. */
function adas(): ReturnType<typeof storage> {
  const place = storage("lockstep:theme", "lockstep:lanes", "somebody:else");
  claimStorage(place, ADA);
  for (const key of [
    DRAFT("ada"),
    "lockstep:machine:c/one",
    "lockstep:comment:ada-byron:c/one",
    "lockstep:problem",
    "lockstep:mark:c/one",
    "lockstep:news",
  ]) {
    place.setItem(key, "Ada's");
  }
  return place;
}

function left(place: ReturnType<typeof storage>): string[] {
  return [...place.kept.keys()].filter((key) => key !== "lockstep:account").sort();
}

const OF_DEVICE = ["lockstep:lanes", "lockstep:theme", "somebody:else"];

test("the account is read from its cookie, under either name", () => {
  assert.equal(accountIn(ADA), "ada");
  assert.equal(accountIn(BOB), "bob");
  assert.equal(accountIn(SIGNED_OUT), "");
  assert.equal(accountIn("not_lockstep_account=eve"), "");
});

test("while the account stays, everything stays", () => {
  const place = adas();
  const before = left(place);
  assert.equal(claimStorage(place, ADA), "ada");
  assert.deepEqual(left(place), before);
});

test("after a sign-out only what belongs to the device is left", () => {
  const place = adas();
  assert.equal(claimStorage(place, SIGNED_OUT), "");
  assert.deepEqual(left(place), OF_DEVICE);
});

test("another account finds nothing, though nobody signed out", () => {
  const place = adas();
  assert.equal(claimStorage(place, BOB), "bob");
  assert.deepEqual(left(place), OF_DEVICE);
});

test("an expired sign-in keeps its drafts, for its own account alone", () => {
  const place = adas();
  claimStorage(place, EXPIRED);
  assert.deepEqual(left(place), [DRAFT("ada"), ...OF_DEVICE].sort());
  claimStorage(place, EXPIRED);
  place.setItem(DRAFT(""), "a visitor's");
  claimStorage(place, ADA);
  assert.equal(place.getItem(DRAFT("ada")), "a visitor's", "what was typed last counts");

  const other = adas();
  claimStorage(other, EXPIRED);
  claimStorage(other, BOB);
  assert.deepEqual(left(other), OF_DEVICE);
});

test("a visitor's things go with them into the account they sign in to", () => {
  const place = storage(DRAFT(""), "lockstep:machine:c/one");
  claimStorage(place, EXPIRED);
  claimStorage(place, ADA);
  assert.deepEqual(left(place), [DRAFT("ada"), "lockstep:machine:c/one"].sort());
  assert.equal(place.getItem(DRAFT("ada")), `of ${DRAFT("")}`);
});

test("what a visitor types after somebody's sign-out stays", () => {
  const place = adas();
  claimStorage(place, SIGNED_OUT);
  place.setItem(DRAFT(""), "a visitor's");
  claimStorage(place, SIGNED_OUT);
  assert.equal(place.getItem(DRAFT("")), "a visitor's");
});

test("drafts of versions that noted no account may be anyone's, and go", () => {
  const place = storage("lockstep:draft:c/one:fit");
  claimStorage(place, EXPIRED);
  assert.deepEqual(left(place), []);
});
