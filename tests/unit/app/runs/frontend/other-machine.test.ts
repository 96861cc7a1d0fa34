import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { NEEDS } from "../../../../../app/runs/frontend/other-machine";

test("the notices that ask for another session are those that the runner knows", () => {
  const hints = readFileSync("runners/wire/error_hints.py", "utf8").split(/^ {4}ErrorHint\(/m);
  const known: Record<string, string> = { "keras-2-chosen": "keras-2" };
  for (const hint of hints.slice(1)) {
    const need = /^ {8}needs="([\w-]+)",$/m.exec(hint)?.[1];
    const code = /^ {8}"([\w-]+)",$/m.exec(hint)?.[1];
    if (need && code) known[code] = need;
  }
  assert.deepEqual(NEEDS, known);
  assert.match(readFileSync("runners/wire/reports.py", "utf8"), /^NEEDS.*\| \{"keras-2-chosen": "keras-2"\}$/m);
});
