import assert from "node:assert/strict";
import { test } from "node:test";

import { nextStep, type OwnDraft, type Step } from "../../../../../app/runs/frontend/draft-sync";

const own = (code: string, version: number, changed: boolean): OwnDraft => ({ code, version, changed });
const theirs = (code: string, version: number): { code: string; version: number } => ({ code, version });

const CASES: [string, OwnDraft, ReturnType<typeof theirs> | null, Step][] = [
  ["a draft that the server does not have is sent", own("mine", 0, true), null, "send"],
  ["an unchanged cell is not sent", own("original", 0, false), null, "nothing"],
  ["a draft that is the same everywhere stays", own("same", 1, true), theirs("same", 4), "nothing"],
  ["a change to the version that the server has is sent", own("mine", 4, true), theirs("old", 4), "send"],
  ["an unchanged cell takes the newer draft", own("original", 0, false), theirs("new", 1), "take"],
  ["a draft that was sent takes the newer one", own("old", 3, false), theirs("new", 4), "take"],
  ["a changed draft is kept, and the newer one is offered", own("mine", 3, true), theirs("new", 4), "offer"],
  ["a visitor's edit is kept beside the account's draft", own("mine", 0, true), theirs("new", 1), "offer"],
];

for (const [name, mine, server, step] of CASES) {
  test(name, () => assert.equal(nextStep(mine, server, true), step));
}

test("a page that has been open replaces no text under its reader's eyes", () => {
  assert.equal(nextStep(own("old", 3, false), theirs("new", 4), false), "offer");
  assert.equal(nextStep(own("mine", 3, true), theirs("new", 4), false), "offer");
  assert.equal(nextStep(own("same", 3, false), theirs("same", 4), false), "nothing");
});
