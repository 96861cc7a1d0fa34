/** Draws the pictures of Lockstep's helpers: a batch's shards, an all-reduce step by step, placement of variables. */

import "./visualization-styles";

import { make } from "../../web/frontend/element";
import { formatSize } from "../../web/frontend/format-units";
import { localizedNumber, say, sayCount } from "../../web/frontend/strings";
import { disclosed, numbersTable } from "../../web/frontend/table";
import { laneColor } from "./lane-color";
import { type PictureData, type Placement, readPicture, type Shards } from "./picture-data";
import { drawReplay } from "./replay";

/** The picture that `content` describes, or null if it is invalid. */
export function drawPicture(content: unknown): HTMLElement | null {
  const data = readPicture(content);
  return data && draw(data);
}

function draw(data: PictureData): HTMLElement {
  if (data.picture === "shards") return drawShards(data);
  return data.picture === "replay" ? drawReplay(data) : drawPlacement(data);
}

function drawShards({ title, replicas, labels }: Shards): HTMLElement {
  const columns = replicas.map(({ lane, device, examples, count }) => {
    const rest = count - examples.length;
    return make(
      `div.shard.${replicaColor(lane)}`,
      {},
      make("b", {}, lane),
      make("span", {}, [shortDevice(device), sayCount("picture.examples", count)].filter(Boolean).join(" · ")),
      make(
        "div.chips",
        {},
        ...examples.map((example) =>
          make("span.chip-of-lane", {}, [example, labels.get(example)].filter(Boolean).join(" · ")),
        ),
        rest > 0 && make("span", {}, say("picture.more", { count: localizedNumber(rest) })),
      ),
    );
  });
  const words = replicas.map(
    ({ lane, examples, count }) =>
      `${lane}: ${sayCount("picture.examples", count)}: ${examples.slice(0, 8).join(", ")}${count > 8 ? " …" : ""}.`,
  );
  const rows = replicas.flatMap(({ lane, device, examples }) =>
    examples.map((example) => [
      example,
      ...(labels.size ? [labels.get(example) ?? ""] : []),
      lane,
      shortDevice(device),
    ]),
  );
  const heads = [
    say("picture.example"),
    ...(labels.size ? [say("picture.label")] : []),
    say("picture.replica"),
    say("picture.device"),
  ];
  const name = [say("picture.shards"), title].filter(Boolean).join(" · ");
  return make(
    "figure.drawn",
    {},
    make("figcaption", {}, name),
    make("div.shards", { role: "img", "aria-label": [`${name}.`, ...words].join(" ") }, ...columns),
    disclosed(say("chart.numbers"), () => numbersTable(name, heads, rows)),
  );
}

function drawPlacement({ variables }: Placement): HTMLElement {
  const devices = [...new Set(variables.flatMap((variable) => variable.devices))];
  const short = shortDevices(devices);
  const dot = (i: number): HTMLElement =>
    make(`span.copy.${deviceColor(devices[i] as string)}`, { role: "img", "aria-label": say("picture.here") });
  const name = say("picture.placement");
  const cell = (text: string): HTMLElement => make("td", {}, text);
  const rows = variables.map((variable) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, variable.name),
      ...devices.map((device, i) => make("td.where", {}, variable.devices.includes(device) && dot(i))),
      cell(variable.kind),
      cell(`${variable.dtype} (${variable.shape.join(", ")})`),
      cell(formatSize(variable.bytes)),
    ),
  );
  const held = devices.map((device) =>
    variables.reduce((sum, variable) => sum + (variable.devices.includes(device) ? variable.bytes : 0), 0),
  );
  const foot = make(
    "tr",
    {},
    make("th", { scope: "row" }, say("picture.together")),
    ...held.map((bytes) => make("td.where", {}, formatSize(bytes))),
    cell(""),
    cell(""),
    cell(""),
  );
  const heads = [say("picture.variable"), ...short, say("picture.kind"), say("picture.shape"), say("picture.size")].map(
    head,
  );
  const table = make(
    "table",
    {},
    make("caption", {}, name),
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...rows),
    make("tfoot", {}, foot),
  );
  return make(
    "figure.drawn.placement",
    {},
    make("div.numbers-frame", { role: "group", tabindex: 0, "aria-label": name }, table),
  );
}

/** A column header; the part of a device's name in parentheses goes below it. */
function head(text: string): HTMLElement {
  const [name, remark] = text.split(/ (?=\()/, 2);
  return make("th", { scope: "col" }, name, remark !== undefined && make("small", {}, remark));
}

/** `/job:worker/replica:0/task:1/device:GPU:0` as "worker 1 GPU:0"; the job only if there are several. */
function shortDevices(devices: readonly string[]): string[] {
  const hosts = new Set(devices.map((device) => host(device)));
  return devices.map((device) =>
    (hosts.size > 1 ? `${host(device)} ${shortDevice(device)}` : shortDevice(device)).trim(),
  );
}

function shortDevice(device: string): string {
  return /\/device:(\w+:\d+)$/.exec(device)?.[1] ?? device;
}

function host(device: string): string {
  const [, job, task] = /^\/job:(\w+)(?:\/replica:\d+)?\/task:(\d+)/.exec(device) ?? [];
  return job && job !== "localhost" ? `${job} ${task as string}` : "";
}

function deviceColor(device: string): string {
  const [task] = /^(?:worker|ps) \d+|^chief/.exec(device) ?? [];
  const of = task ?? host(device);
  if (of) return laneColor(of, "");
  const [, number] = /(?:GPU|TPU):(\d+)/i.exec(device) ?? [];
  return number === undefined ? "r-ink" : `r${Number(number) % 8}`;
}

/** With several workers, a replica is named after both: "worker 1, replica 0". */
function replicaColor(lane: string): string {
  return laneColor(/replica \d+$/.exec(lane)?.[0] ?? lane, "");
}
