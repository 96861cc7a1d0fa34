import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readFile, withoutOutputs } from "../../../../../app/playground/frontend/playground";

test("a notebook is sent without outputs, attachments and widgets, and with everything else", () => {
  const code = { cell_type: "code", source: ["x"], outputs: [{ data: "a large picture" }], execution_count: 3 };
  const text = { cell_type: "markdown", source: "# A", attachments: { "a.png": {} } };
  const metadata = { kernelspec: { name: "python3" }, widgets: { state: {} } };
  const sent: unknown = JSON.parse(withoutOutputs(JSON.stringify({ nbformat: 4, metadata, cells: [code, text] })));
  assert.deepEqual(sent, {
    nbformat: 4,
    metadata: { kernelspec: { name: "python3" } },
    cells: [
      { ...code, outputs: [] },
      { ...text, attachments: {} },
    ],
  });
});

test("anything else is sent as it is, so that the server can say what is wrong with it", () => {
  for (const text of ["", "print(1)", "[1]", "null", '{"cells": 5}', "{", '{"worksheets": []}', '{"cells": ["abc"]}'])
    assert.equal(withoutOutputs(text), text);
  const strange = '{"cells":[],"metadata":"abc"}';
  assert.equal(withoutOutputs(strange), strange);
});

test("the message about a file that is too large names the limit that it exceeds", async () => {
  Object.assign(globalThis, { document: { getElementById: () => null } }); // what is said is the key of the sentence
  const refused = async (name: string, size: number): Promise<string> => {
    const file = new File(["x".repeat(Math.min(size, 900_001))], name);
    Object.defineProperty(file, "size", { value: size });
    return readFile(file).then(
      () => "",
      (error: Error) => error.message,
    );
  };
  assert.equal(await refused("a.ipynb", 64_000_001), "playground.tooLargeToRead");
  assert.equal(await refused("a.ipynb", 64_000_000), "playground.tooLarge");
  assert.equal(await refused("a.py", 900_000), "");
  assert.equal(await refused("a.CSV", 900_001), "playground.dataTooLarge");
  assert.equal(await refused("a.csv", 90_001), "", "the server says it of those that it can get");
});

test("the limits of data files are those of the server", () => {
  const script = readFileSync("app/playground/frontend/playground.ts", "utf8");
  const server = readFileSync("app/playground/notebook_file.py", "utf8");
  const kilobytes = /MAX_DATA_KB = (\d+)/.exec(script)![1];
  assert.equal(/MAX_DATA_BYTES = (\w+)/.exec(server)![1], `${kilobytes}_000`);
  const endings = [.../_DATA_ENDINGS = \((.*)\)/.exec(server)![1]!.matchAll(/"\.(\w+)"/g)].map(([, ending]) => ending);
  assert.equal(/\.\(([\w|]+)\)\$/.exec(script)![1], endings.join("|"));
});
