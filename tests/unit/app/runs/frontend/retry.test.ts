import assert from "node:assert/strict";
import { test } from "node:test";

import { NetworkError, ResponseError } from "../../../../../app/runs/frontend/api";
import { retryUntilAccepted } from "../../../../../app/runs/frontend/retry";

const starting = (): ResponseError => new ResponseError(503, "runner_offline", "The runner is starting.");

/** Fails with each error in turn, then gives "taken"; counts its calls. */
function server(...errors: Error[]): { attempt: () => Promise<string>; calls: () => number } {
  let calls = 0;
  return {
    calls: () => calls,
    attempt: async () => {
      const error = errors[calls++];
      if (error) throw error;
      return "taken";
    },
  };
}

test("a hand-in is tried until it is taken, and says each time that nothing answers", async () => {
  const { attempt, calls } = server(starting(), new NetworkError("away"));
  const said: string[] = [];
  assert.equal(
    await retryUntilAccepted(attempt, (error) => said.push(error.message), new AbortController().signal, 1),
    "taken",
  );
  assert.deepEqual([calls(), said], [3, ["The runner is starting.", "away"]]);
});

test("a hand-in that is given up while it waits ends at once and is not tried again", async () => {
  const { attempt, calls } = server(starting());
  const hope = new AbortController();
  const begun = performance.now();
  assert.equal(await retryUntilAccepted(attempt, () => queueMicrotask(() => hope.abort()), hope.signal, 60_000), null);
  assert.equal(calls(), 1);
  assert.ok(performance.now() - begun < 5_000);
});

test("a hand-in given up before its turn is never tried", async () => {
  const { attempt, calls } = server();
  assert.equal(await retryUntilAccepted(attempt, () => undefined, AbortSignal.abort()), null);
  assert.equal(calls(), 0);
});

test("a run taken while it was being given up is still given, so that it can be stopped", async () => {
  const hope = new AbortController();
  const attempt = async (): Promise<string> => {
    hope.abort();
    return "taken";
  };
  assert.equal(await retryUntilAccepted(attempt, () => undefined, hope.signal), "taken");
});

test("a refusal is passed on, but not once nobody asks any more", async () => {
  const refusal = new ResponseError(413, "code_too_long", "too long");
  await assert.rejects(
    retryUntilAccepted(server(refusal).attempt, () => undefined, new AbortController().signal),
    refusal,
  );
  const hope = new AbortController();
  const late = async (): Promise<string> => {
    hope.abort();
    throw refusal;
  };
  assert.equal(await retryUntilAccepted(late, () => undefined, hope.signal), null);
});
