/**
 * The data of a picture, validated field by field, because it comes from inside a sandbox and anyone can forge it.
 *
 * Invalid data is not drawn; its text is shown instead. Pure.
 */

import type { Measure } from "./protocol";
import { measure } from "./series";

const MOST_REPLICAS = 16;
const MOST_EXAMPLES = 256;
const MOST_VALUES = 16;
const MOST_VARIABLES = 200;
const MOST_DEVICES = 32;
const MOST_DIMENSIONS = 8;
const LONGEST_WORD = 120;
const LONGEST_CHIP = 24;

export interface Shard {
  lane: string;
  device: string;
  examples: string[];
  /** The number of all examples; `examples` may contain only the first few. */
  count: number;
}
export interface Shards {
  picture: "shards";
  title: string;
  replicas: Shard[];
  /** The labels of examples, by name. */
  labels: Map<string, string>;
}
export interface Replay {
  picture: "replay";
  variable: string;
  shape: number[];
  operation: string;
  algorithm: string;
  replicas: { lane: string; values: number[] }[];
  reduced: number[];
  before: number[];
  after: number[] | null;
  /** The indices of each number in the variable; empty if unknown. */
  positions: number[][];
}
export interface Placed {
  name: string;
  shape: number[];
  dtype: string;
  kind: string;
  devices: string[];
  bytes: number;
}
export interface Placement {
  picture: "placement";
  variables: Placed[];
}
export type PictureData = Shards | Replay | Placement;

class Unfit extends Error {}

/** The picture, or null if its data is invalid. */
export function readPicture(content: unknown): PictureData | null {
  try {
    const from = record(content);
    if (from.picture === "shards") return shards(from);
    if (from.picture === "replay") return replay(from);
    return from.picture === "placement" ? placement(from) : null;
  } catch (error) {
    if (error instanceof Unfit) return null;
    throw error;
  }
}

function shards(from: Record<string, unknown>): Shards {
  const labels = from.labels === null || from.labels === undefined ? {} : record(from.labels);
  return {
    picture: "shards",
    title: word(from.title ?? ""),
    replicas: list(from.replicas, MOST_REPLICAS, 1).map((each) => {
      const replica = record(each);
      const examples = list(replica.examples, MOST_EXAMPLES).map((example) => chip(example));
      return {
        lane: word(replica.lane),
        device: word(replica.device ?? ""),
        examples,
        count: Math.max(count(replica.count ?? examples.length), examples.length),
      };
    }),
    labels: new Map(
      Object.entries(labels)
        .slice(0, MOST_EXAMPLES * MOST_REPLICAS)
        .map(([name, label]) => [name, chip(label)]),
    ),
  };
}

function replay(from: Record<string, unknown>): Replay {
  const reduced = numbers(from.reduced);
  const same = <T>(values: T[]): T[] => (values.length === reduced.length ? values : unfit());
  return {
    picture: "replay",
    variable: word(from.variable),
    shape: shape(from.shape),
    operation: word(from.operation),
    algorithm: word(from.algorithm ?? ""),
    replicas: list(from.replicas, MOST_REPLICAS, 1).map((each) => ({
      lane: word(record(each).lane),
      values: same(numbers(record(each).values)),
    })),
    reduced,
    before: same(numbers(from.before)),
    after: from.after === null || from.after === undefined ? null : same(numbers(from.after)),
    positions: from.positions === undefined ? [] : same(list(from.positions, MOST_VALUES).map(shape)),
  };
}

function placement(from: Record<string, unknown>): Placement {
  const variables = list(from.variables, MOST_VARIABLES, 1).map((each) => {
    const variable = record(each);
    return {
      name: word(variable.name),
      shape: shape(variable.shape),
      dtype: word(variable.dtype ?? ""),
      kind: word(variable.kind ?? ""),
      devices: list(variable.devices, MOST_DEVICES).map((device) => word(device)),
      bytes: count(variable.bytes ?? 0),
    };
  });
  if (new Set(variables.flatMap((variable) => variable.devices)).size > MOST_DEVICES) unfit();
  return { picture: "placement", variables };
}

function unfit(): never {
  throw new Unfit();
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : unfit();
}

function list(value: unknown, most: number, least = 0): unknown[] {
  return Array.isArray(value) && value.length >= least && value.length <= most ? value : unfit();
}

function word(value: unknown, most = LONGEST_WORD): string {
  return typeof value === "string" && value.length <= most ? value.replace(/[\p{Cc}\p{Cf}]/gu, " ") : unfit();
}

function chip(value: unknown): string {
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (typeof value !== "string") return unfit();
  const plain = value.replace(/[\p{Cc}\p{Cf}]/gu, " ");
  return plain.length > LONGEST_CHIP ? `${plain.slice(0, LONGEST_CHIP - 1)}…` : plain;
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : unfit();
}

function shape(value: unknown): number[] {
  return list(value, MOST_DIMENSIONS).map(count);
}

function numbers(value: unknown): number[] {
  return list(value, MOST_VALUES, 1).map((each) =>
    typeof each === "number" || each === "nan" || each === "inf" || each === "-inf"
      ? measure(each as Measure)
      : unfit(),
  );
}
