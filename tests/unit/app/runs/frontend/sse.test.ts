import assert from "node:assert/strict";
import { test } from "node:test";

import { SseParser } from "../../../../../app/runs/frontend/sse";

const STREAM = ': ping\n\nid: 7\nevent: text\ndata: {"seq":7}\n\nevent: state\r\ndata: {}\r\n\r\ndata: a\ndata: b\n\n';
const EXPECTED = [
  { id: "7", event: "text", data: '{"seq":7}' },
  { id: "", event: "state", data: "{}" },
  { id: "", event: "message", data: "a\nb" },
];

test("messages come out whole, comments do not come out", () => {
  assert.deepEqual(new SseParser().feed(STREAM), EXPECTED);
});

test("a message may be cut anywhere", () => {
  for (let size = 1; size < 12; size++) {
    const parser = new SseParser();
    const found = [];
    for (let i = 0; i < STREAM.length; i += size) found.push(...parser.feed(STREAM.slice(i, i + size)));
    assert.deepEqual(found, EXPECTED, `in pieces of ${size}`);
  }
});

test("an unfinished message waits", () => {
  const parser = new SseParser();
  assert.deepEqual(parser.feed("data: x\n"), []);
  assert.deepEqual(parser.feed("\n"), [{ id: "", event: "message", data: "x" }]);
});
