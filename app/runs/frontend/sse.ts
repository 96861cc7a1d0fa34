/** Parses server-sent events from text that arrives in arbitrary chunks. */

export interface Message {
  id: string;
  event: string;
  data: string;
}

export class SseParser {
  private rest = "";

  /** The messages completed by `chunk`. Comments and empty messages are ignored. */
  feed(chunk: string): Message[] {
    this.rest += chunk;
    // A trailing \r may be half of \r\n, so it waits for the next chunk.
    const held = this.rest.endsWith("\r") ? "\r" : "";
    const blocks = this.rest
      .slice(0, this.rest.length - held.length)
      .replace(/\r\n?/g, "\n")
      .split("\n\n");
    this.rest = (blocks.pop() ?? "") + held;
    return blocks.map(message).filter((m): m is Message => m !== null);
  }
}

function message(block: string): Message | null {
  const found: Message = { id: "", event: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") found.event = value;
    else if (field === "id") found.id = value;
  }
  if (!data.length) return null;
  found.data = data.join("\n");
  return found;
}
