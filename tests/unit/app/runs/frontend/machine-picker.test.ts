import assert from "node:assert/strict";
import { test } from "node:test";

import { MachineChoices } from "../../../../../app/runs/frontend/machine-picker";

const OFFERED: [string[], number[]] = [
  ["gpu:2", "gpu:4"],
  [2, 3],
];

function storage(): Pick<Storage, "getItem" | "setItem"> & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return { kept, getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) };
}

test("a choice is found again, for its own lesson and group of cells only", () => {
  const place = storage();
  new MachineChoices("c/one", place).keep("a", { topology: "gpu:2", keras: 3 });
  new MachineChoices("c/one", place).keep("b", { topology: "gpu:4", keras: 2 });
  assert.deepEqual(new MachineChoices("c/one", place).find("a", ...OFFERED), { topology: "gpu:2", keras: 3 });
  assert.deepEqual(new MachineChoices("c/one", place).find("b", ...OFFERED), { topology: "gpu:4", keras: 2 });
  assert.equal(new MachineChoices("c/one", place).find("c", ...OFFERED), null);
  assert.equal(new MachineChoices("c/two", place).find("a", ...OFFERED), null);
});

test("what the lesson does not offer any more is no choice", () => {
  const place = storage();
  new MachineChoices("c/one", place).keep("a", { topology: "gpu:8", keras: 3 });
  assert.equal(new MachineChoices("c/one", place).find("a", ...OFFERED), null);
  new MachineChoices("c/one", place).keep("a", { topology: "gpu:2", keras: 4 });
  assert.equal(new MachineChoices("c/one", place).find("a", ...OFFERED), null);
});

test("a storage with rubbish, a full one and none at all are no trouble", () => {
  const place = storage();
  for (const rubbish of ["{", "3", "null", '{"a": 1}', '{"a": {"topology": 2}}']) {
    place.kept.set("lockstep:machine:c/one", rubbish);
    assert.equal(new MachineChoices("c/one", place).find("a", ...OFFERED), null);
  }
  const full = {
    getItem: () => null,
    setItem: (): void => {
      throw new Error("full");
    },
  };
  for (const none of [full, null]) {
    const choices = new MachineChoices("c/one", none);
    choices.keep("a", { topology: "gpu:2", keras: 3 });
    assert.equal(choices.find("a", ...OFFERED), null);
  }
});
