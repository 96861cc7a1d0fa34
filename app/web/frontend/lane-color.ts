/** A replica keeps its color everywhere, and so does the worker that it belongs to. Pure. */

/** The class that gives a lane of this machine its color. Servers, evaluators and coordinators train nothing: ink. */
export function laneColor(lane: string, topology: string): string {
  const [, role, number] = /^(?:.+ · (?=replica))?(replica|worker) (\d+)$/.exec(lane) ?? [];
  if (lane === "chief" && isWorker(topology)) return "r0";
  if (role === undefined) return "r-ink";
  if (role === "replica") return `r${Number(number) % 8}`;
  const [, each] = /xgpu:(\d)/.exec(topology) ?? [];
  const before = Number(number) + (isWorker(topology) && topology.includes("+chief") ? 1 : 0);
  return `r${(before * Number(each ?? 1)) % 8}`;
}

/** Whether a chief of this machine is a worker, not a coordinator. */
function isWorker(topology: string): boolean {
  return topology.startsWith("workers:");
}
