/** A new visitor's requests: the server creates one visitor, whatever is pressed at once. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { inTurn } from "../../../../../app/web/frontend/visitor-requests";

const POST = { method: "POST" };

/** A server whose answers come when the test says so. */
function server(known = (): boolean => false, patienceMs = 1_000) {
  const arrived: string[] = [];
  const waiting = new Map<string, { resolve(response: Response): void; reject(error: Error): void }>();
  const request = ((url: string) => {
    arrived.push(url);
    return new Promise<Response>((resolve, reject) => waiting.set(url, { resolve, reject }));
  }) as typeof fetch;
  const send = inTurn(request, known, patienceMs);
  const settled = (): Promise<void> => new Promise((go) => setImmediate(go));
  return {
    arrived,
    send: (url: string, init?: RequestInit) => send(url, init),
    answer(url: string) {
      waiting.get(url)?.resolve(new Response(url));
      return settled();
    },
    lose(url: string) {
      waiting.get(url)?.reject(new TypeError("unreachable"));
      return settled();
    },
    settled,
  };
}

test("what is stored second waits for the first answer; what is read does not", async () => {
  const { arrived, send, answer, settled } = server();
  const first = send("/session", POST);
  const later = [send("/runs", POST), send("/answer", POST)];
  void send("/progress");
  await settled();
  assert.deepEqual(arrived, ["/session", "/progress"]);

  await answer("/session");
  assert.equal(await (await first).text(), "/session");
  assert.deepEqual(arrived, ["/session", "/progress", "/runs", "/answer"]);
  await answer("/answer");
  await answer("/runs");
  assert.deepEqual(await Promise.all(later.map(async (sent) => (await sent).text())), ["/runs", "/answer"]);
});

test("once the page knows the learner, nothing waits", async () => {
  const { arrived, send, settled } = server(() => true);
  void send("/one", POST);
  void send("/two", POST);
  await settled();
  assert.deepEqual(arrived, ["/one", "/two"]);
});

test("a first request that is lost is the caller's to handle, and the next one takes its place", async () => {
  const { arrived, send, lose, settled } = server();
  const lost = send("/one", POST);
  await settled();
  const fails = assert.rejects(lost, TypeError);
  await lose("/one");
  await fails;
  void send("/two", POST);
  void send("/three", POST);
  await settled();
  assert.deepEqual(arrived, ["/one", "/two"]);
});

test("a first answer that does not come holds nothing up for long", async () => {
  const { arrived, send } = server(undefined, 5);
  void send("/one", POST);
  void send("/two", POST);
  await new Promise((go) => setTimeout(go, 30));
  assert.deepEqual(arrived, ["/one", "/two"]);
});
