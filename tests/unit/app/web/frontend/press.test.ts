/** A press: what arrives meanwhile waits for its end, but not for long. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { shownWhen } from "../../../../../app/web/frontend/fragments";
import { Press } from "../../../../../app/web/frontend/press";

/** Whether the text of a response is there yet. */
async function reading(press: Press) {
  const request = shownWhen(
    () => Promise.resolve(new Response("text")),
    () => press.ended(),
  );
  let text = "";
  void request("/comments")
    .then((response) => response.text())
    .then((read) => (text = read));
  const settled = async (): Promise<string> => {
    for (let turn = 0; turn < 5; turn += 1) await new Promise((go) => setImmediate(go));
    return text;
  };
  await settled();
  return settled;
}

test("a fragment waits for the click that ends a press", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const press = new Press();
  assert.equal(await (await reading(press))(), "text");
  press.begin();
  const text = await reading(press);
  assert.equal(await text(), "");
  press.release();
  assert.equal(await text(), "");
  context.mock.timers.tick(50);
  assert.equal(await text(), "text");
  assert.equal(await (await reading(press))(), "text");
});

test("a second press goes on where the first ended, and a long one holds nothing back forever", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const press = new Press();
  press.begin();
  const text = await reading(press);
  press.release();
  press.begin();
  context.mock.timers.tick(1_999);
  assert.equal(await text(), "");
  context.mock.timers.tick(1);
  assert.equal(await text(), "text");
});

test("a release without a press does nothing", async () => {
  const press = new Press();
  press.release();
  assert.equal(await (await reading(press))(), "text");
});
