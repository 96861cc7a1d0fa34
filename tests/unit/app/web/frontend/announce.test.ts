/** What is said to people who listen: sentences that end, so that a voice rests between them. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { joinSentences } from "../../../../../app/web/frontend/announce";

test("pieces are spoken one after the other, with a stop between them", () => {
  assert.equal(joinSentences(["Four replicas: Finished", "", "loss 2.033"]), "Four replicas: Finished. loss 2.033");
  assert.equal(joinSentences(["Stopped", "Try less data.", ""]), "Stopped. Try less data.");
  assert.equal(joinSentences(["已停止。", "请减少数据。"]), "已停止。 请减少数据。");
  assert.equal(joinSentences(["Finished"]), "Finished");
  assert.equal(joinSentences(["", ""]), "", "nothing to say");
});
