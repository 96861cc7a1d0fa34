/**
 * What the editor knows about names: from the kernel of the cell's session, if that has nothing else to do, and from
 * the code of the lesson.
 */

import { send } from "./api";
import type { Machine } from "./protocol";

/** As `Introspection` in runners/wire/protocol.py; places count UTF-16 units, as everywhere in JavaScript. */
export interface Introspection {
  state: "answered" | "busy";
  start: number;
  matches: { text: string; kind: string }[];
  text: string;
}

export interface Question {
  kind: "complete" | "inspect";
  code: string;
  cursor: number;
}

const PATIENCE_MS = 3_000;
const IMPORT = /^(?:import|from)[ \t].*$/gm;
const NAME = /[\p{L}_][\p{L}\p{N}_]*/gu;
const LONGEST = 60;

/** Where the code of an editor is. */
export interface Surroundings {
  lesson: string;
  machine(): Machine;
  /** The code of the cells above on the same machine: their imports count. */
  above(): string[];
}

export class Introspector {
  constructor(private readonly about: Surroundings) {}

  /** The kernel's answer; null if there is none. */
  async ask({ kind, code, cursor }: Question): Promise<Introspection | null> {
    const imports = importsOf(this.about.above());
    const units = imports.length;
    const body = JSON.stringify({
      lesson: this.about.lesson,
      ...this.about.machine(),
      kind,
      code: imports + code,
      cursor: characters(imports + code.slice(0, cursor)),
    });
    try {
      const response = await send("/introspection", {
        method: "POST",
        body,
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (!response.ok) return null;
      const found = (await response.json()) as Introspection;
      return { ...found, start: Math.max(0, unitsOf(imports + code, found.start) - units) };
    } catch {
      return null; // without the server, the editor knows what is in the lesson
    }
  }

  /** Names in the code of this cell and those above that could complete `before`. */
  known(before: string, code: string): string[] {
    return knownNames(before, [...this.about.above(), code].join("\n"));
  }
}

/** The import lines of some code, each with its line break. */
export function importsOf(code: string[]): string {
  const lines = code.flatMap((each) => each.match(IMPORT) ?? []);
  return [...new Set(lines)].map((line) => `${line}\n`).join("");
}

/** The names in `code` that could complete `before`: after a dot, only what follows the same names there. */
export function knownNames(before: string, code: string): string[] {
  const written = /(?:([\p{L}_][\p{L}\p{N}_.]*)\.)?([\p{L}_][\p{L}\p{N}_]*)?$/u.exec(before);
  const [owner, start = ""] = [written?.[1], written?.[2]];
  if (!owner && before.endsWith(`.${start}`)) return [];
  const found = owner
    ? [...code.matchAll(new RegExp(`(?<![\\p{L}\\p{N}_.])${escaped(owner)}\\.([\\p{L}_][\\p{L}\\p{N}_]*)`, "gu"))].map(
        ([, name = ""]) => name,
      )
    : code.replace(/(["'])(?:\\.|(?!\1)[^\\\n])*\1|#[^\n]*/g, " ").match(NAME);
  const longer = (found ?? []).filter((name) => name.startsWith(start) && name !== start && name.length <= LONGEST);
  return [...new Set(longer)].sort();
}

function escaped(text: string): string {
  return text.replace(/\./g, "\\.");
}

/** Python counts characters where JavaScript counts UTF-16 units. */
function characters(text: string): number {
  return [...text].length;
}

function unitsOf(text: string, count: number): number {
  return [...text].slice(0, count).join("").length;
}
