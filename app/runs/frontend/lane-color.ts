/** A replica has the same color everywhere, and so does its worker. Pure. */

/** The color class of a lane on this machine. Servers, evaluators and coordinators do not train: they are ink. */
export function laneColor(lane: string, topology: string): string {
  const [, role, number] = /^(?:.+ · (?=replica))?(replica|worker) (\d+)$/.exec(lane) ?? [];
  if (lane === "chief" && isWorker(topology)) return "r0";
  if (role === undefined) return "r-ink";
  if (role === "replica") return `r${Number(number) % 8}`;
  const [, each] = /xgpu:(\d)/.exec(topology) ?? [];
  const before = Number(number) + (isWorker(topology) && topology.includes("+chief") ? 1 : 0);
  return `r${(before * Number(each ?? 1)) % 8}`;
}

/** Whether a chief on this machine is a worker rather than a coordinator. */
function isWorker(topology: string): boolean {
  return topology.startsWith("workers:");
}
