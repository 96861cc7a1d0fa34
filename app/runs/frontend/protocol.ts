/** The wire protocol as the browser sees it: runs, and their numbered events. Mirrors runners/wire/protocol.py. */

export type Outcome =
  | "ok"
  | "error"
  | "interrupted"
  | "timeout"
  | "cpu"
  | "memory"
  | "output"
  | "processes"
  | "disk"
  | "files"
  | "crash"
  | "lost";

export type Stream = "stdout" | "stderr";

/** The worker or replica that wrote something, such as "worker 1"; null (or missing, in old events) for the cell. */
export type Lane = string | null;

interface Numbered {
  /** 1, 2, 3, … without a gap within a run. */
  seq: number;
  /** Milliseconds since the supervisor accepted the run. */
  at_ms: number;
}

export interface Started extends Numbered {
  kind: "started";
  /** The ID of the kernel that ran it; missing in old events. */
  kernel_id?: string;
}
export interface Text extends Numbered {
  kind: "text";
  stream: Stream;
  text: string;
  lane?: Lane;
}
export interface Display extends Numbered {
  kind: "display";
  data: Record<string, unknown>;
  metadata: Record<string, unknown>;
  display_id: string | null;
  update: boolean;
  result: boolean;
  lane?: Lane;
}
export interface Clear extends Numbered {
  kind: "clear";
  wait: boolean;
  lane?: Lane;
}
export interface Frame {
  text: string;
  /** Whether the frame shows the learner's own code, or the error itself. */
  own: boolean;
}
export interface ErrorEvent extends Numbered {
  kind: "error";
  name: string;
  value: string;
  frames: Frame[];
  lane?: Lane;
}
export interface Notice extends Numbered {
  kind: "notice";
  code: string;
  values: Record<string, string | number>;
  text: string;
  limit: Limit | null;
  lane?: Lane;
}
/** A number, or a word for a value that JSON cannot express. */
export type Measure = number | "nan" | "inf" | "-inf";

export interface Metric extends Numbered {
  kind: "metric";
  step: number;
  per: "step" | "epoch";
  values: Record<string, Measure>;
  lane?: Lane;
  /** The name of the model that is trained. */
  training?: string | null;
}
export interface Progress extends Numbered {
  kind: "progress";
  label: string;
  done: number;
  total: number | null;
  unit: "step" | "epoch" | "item";
  /** Seconds. */
  left_s: number | null;
  lane?: Lane;
}
export interface Limit {
  name: string;
  value: number;
  unit: "s" | "bytes" | "bytes/s" | "count";
}
export interface Finished extends Numbered {
  kind: "finished";
  outcome: Outcome;
  duration_ms: number;
  first_output_ms: number | null;
  peak_bytes: number | null;
  limit: Limit | null;
  /** Runs that the same kernel had started before; missing if the run never started, and in old events. */
  runs_before?: number | null;
}

/** The result of a check of a submission. */
export interface CheckEvent extends Numbered {
  kind: "check";
  name: string;
  outcome: "passed" | "failed" | "error" | "not-reached" | "too-slow" | "fault";
  /** May contain `{names}`, which are filled in from `values`. */
  message: string;
  values: Record<string, string>;
  got: string | null;
  wanted: string | null;
}

export type RunEvent =
  | Started
  | Text
  | Display
  | Clear
  | ErrorEvent
  | Metric
  | Progress
  | Notice
  | CheckEvent
  | Finished;

/** The state of a run that has not started; it is neither stored nor numbered. */
export interface Waiting {
  state: "queued" | "starting" | "running" | "reconnecting" | "unstored";
  position: number | null;
  ahead: number;
  /** Rough seconds until a slot is free: 0 for less than 10, then tens, then minutes; null if unknown. */
  wait_s?: number | null;
}

/** The machine of a session. */
export interface Machine {
  topology: string;
  keras: number;
}

export interface Run {
  id: string;
  lesson: string;
  cell: string;
  topology: string;
  keras: number;
  state: "queued" | "running" | "finished";
  outcome: Outcome | null;
  created_at: string;
  code: string;
  last_seq: number;
  position: number | null;
  ahead: number;
  wait_s: number | null;
  /** How long it had been running when the server answered; null if it was waiting or had finished. */
  running_ms: number | null;
  urls: { stream: string; events: string; stop: string };
}
