import assert from "node:assert/strict";
import { test } from "node:test";

import { differences, LiveKernels, type Origin } from "../../../../../app/runs/frontend/provenance";

const HERE = { topology: "gpu:4", keras: 3 };
const MADE: Origin = { ...HERE, code: "x = 1\n", kernel: "k1" };

test("the same code on the same machine in a live session made it", () => {
  assert.deepEqual(differences(MADE, "x = 1\n", HERE, false), []);
  assert.deepEqual(differences(MADE, "x = 1", HERE, false), [], "space at the end runs the same");
});

test("other code is another version, in whatever it differs", () => {
  for (const code of ["x = 2\n", "x = 1  # one", "", " x = 1"])
    assert.deepEqual(differences(MADE, code, HERE, false), ["version"]);
});

test("another topology or another Keras is another machine, whose session is another anyway", () => {
  for (const other of [
    { topology: "gpu:2", keras: 3 },
    { topology: "gpu:4", keras: 2 },
  ]) {
    assert.deepEqual(differences(MADE, MADE.code, other, false), ["machine"]);
    assert.deepEqual(differences(MADE, MADE.code, other, true), ["machine"]);
  }
});

test("a kernel that is gone is an earlier session; a run that never started had none", () => {
  assert.deepEqual(differences(MADE, MADE.code, HERE, true), ["session"]);
  assert.deepEqual(differences(MADE, "x = 2", HERE, true), ["version", "session"]);
  assert.deepEqual(differences({ ...MADE, kernel: null }, MADE.code, HERE, true), []);
});

test("a kernel is gone once the server, asked after its run, does not name it", () => {
  const kernels = new LiveKernels();
  assert.equal(kernels.gone("k1", -Infinity), false, "nobody has said so");
  kernels.told("k1 k2", 10);
  assert.equal(kernels.gone("k1", -Infinity), false);
  assert.equal(kernels.gone("k3", -Infinity), true);
  assert.equal(kernels.gone("k3", 20), false, "it may have come since");
  kernels.told("k3", 30);
  kernels.told("k1 k2", 25);
  assert.equal(kernels.gone("k3", 20), false, "the later question counts");
  assert.equal(kernels.gone("k1", 20), true);
  kernels.told(undefined, 40);
  assert.equal(kernels.gone("k1", 20), true, "a server that does not know says nothing");
});

test("without any session every kernel is gone, also one that old events do not name", () => {
  const kernels = new LiveKernels();
  kernels.told("", 10);
  assert.equal(kernels.gone("k1", -Infinity), true);
  assert.equal(kernels.gone("", -Infinity), true);
});
