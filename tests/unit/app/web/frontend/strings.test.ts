import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { fill } from "../../../../../app/web/frontend/strings";

const source = readdirSync("app", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(`app/${name}`, "utf8"))
  .join("\n");
/** The texts in the page, and those that it loads with the editor. */
const island = new Set(
  ["app/web/templates/strings.html", "app/runs/editor_texts.py"].flatMap((name) =>
    [...readFileSync(name, "utf8").matchAll(/^ +"([\w.-]+)": (?:N?_|ngettext)\(/gm)].map((found) => found[1] as string),
  ),
);

/** Keys made at run time: one for each outcome of a run and of a check, one for a session that failed, and for each limit a run can meet. */
const OUTCOMES = [
  "ok",
  "error",
  "interrupted",
  "timeout",
  "cpu",
  "memory",
  "output",
  "processes",
  "disk",
  "files",
  "crash",
  "lost",
  "session",
];
const OTHERS = ["advice.crash", "advice.lost", "advice.session"];
const OF_REFUSALS = ["sessions_per_learner", "runs_per_session", "sessions"];
const protocol = readFileSync("runners/wire/protocol.py", "utf8");
const LIMITS = [.../LimitName = Literal\[([^\]]*)\]/.exec(protocol)![1]!.matchAll(/"(\w+)"/g)]
  .map(([, name]) => name as string)
  .filter((name) => !OF_REFUSALS.includes(name));
const CHECK_OUTCOMES = [.../CheckOutcome = Literal\[([^\]]*)\]/.exec(protocol)![1]!.matchAll(/"([a-z-]+)"/g)].map(
  ([, name]) => name as string,
);
const REASONS = [...readFileSync("runners/supervisor/session.py", "utf8").matchAll(/^ {4}\w+: "([a-z-]+)",$/gm)].map(
  ([, reason]) => reason as string,
);

test("every sentence the script says is on the page, and nothing else is", () => {
  const said = new Set<string>();
  for (const [call] of source.matchAll(/\bsay(?:Count)?\([^;]*?\)/g)) {
    const counted = call.startsWith("sayCount");
    for (const [, key] of call.matchAll(/"([a-z][A-Za-z]*\.[A-Za-z]+)"/g)) {
      for (const form of counted ? [".one", ".other"] : [""]) said.add(`${key as string}${form}`);
    }
  }
  for (const outcome of OUTCOMES) said.add(`outcome.${outcome}`);
  for (const outcome of CHECK_OUTCOMES) said.add(`check.${outcome}`);
  for (const limit of LIMITS) said.add(`limit.${limit}`).add(`advice.${limit}`);
  for (const reason of [...REASONS, "internal"]) said.add(`failure.${reason}`);
  for (const key of OTHERS) said.add(key);
  const notices = [...island].filter((key) => key.startsWith("notice."));
  assert.deepEqual([...said, ...notices].sort(), [...island].sort());
});

test("every notice of the runner has its words", () => {
  const runner = readdirSync("runners", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".py"))
    .map((name) => readFileSync(`runners/${name}`, "utf8"))
    .join("\n");
  const codes = [...runner.matchAll(/"notice",\s*code="([^"]+)"/g)].map(([, code]) => `notice.${code as string}`);
  assert.ok(codes.length > 0);
  const inside = /^NOTICES[^{]*\{([^}]*(?:\{\w+\}[^}]*)*)\}$/m.exec(readFileSync("runners/wire/reports.py", "utf8"));
  codes.push(...[...inside![1]!.matchAll(/^ {4}"([a-z-]+)":/gm)].map(([, code]) => `notice.${code as string}`));
  assert.deepEqual(
    codes.filter((key) => !island.has(key)),
    [],
  );
});

test("values are filled in; an unknown name stays", () => {
  assert.equal(fill("{a} of {b}", { a: 1 }), "1 of {b}");
});
