import assert from "node:assert/strict";
import { test } from "node:test";

import { Backoff } from "../../../../../app/web/frontend/backoff";
import { PollingPauses } from "../../../../../app/web/frontend/polling";

test("each wait is twice as long as the one before, up to the longest", () => {
  const backoff = new Backoff(250, 10_000, () => 0);
  assert.deepEqual(
    Array.from({ length: 8 }, () => backoff.next()),
    [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000],
  );
});

test("a wait is shortened by up to half, so tabs that failed together come back apart", () => {
  const waits = [0, 0.5, 0.9].map((random) => new Backoff(1_000, 1_000, () => random).next());
  assert.deepEqual(waits.map(Math.round), [1_000, 750, 550]);
});

test("after a success the waits begin again", () => {
  const backoff = new Backoff(250, 10_000, () => 0);
  backoff.next();
  backoff.next();
  backoff.reset();
  assert.equal(backoff.next(), 250);
});

test("an outage of hours does not overflow", () => {
  const backoff = new Backoff(250, 10_000, () => 0);
  for (let i = 0; i < 5_000; i++) backoff.next();
  assert.equal(backoff.next(), 10_000);
});

test("an element that polls skips polls after a failure, and longer after another", () => {
  const pauses = new PollingPauses(() => 0);
  assert.equal(pauses.skips("session", 0), false);
  pauses.note("session", 503, 0);
  assert.deepEqual([pauses.skips("session", 3_999), pauses.skips("session", 4_000)], [true, false]);
  pauses.note("session", 0, 4_000);
  assert.deepEqual([pauses.skips("session", 11_999), pauses.skips("session", 12_000)], [true, false]);
  assert.equal(pauses.skips("other", 5_000), false);
});

test("an answer ends the pause, and so does a refusal that no wait would change", () => {
  for (const status of [200, 204, 404]) {
    const pauses = new PollingPauses(() => 0);
    pauses.note("session", 500, 0);
    pauses.note("session", status, 1);
    assert.equal(pauses.skips("session", 2), false);
  }
});
