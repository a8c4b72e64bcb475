import { hash } from "node:crypto";

/**
 * The id of an imported session: made from its key alone, so that a second import, or one on another
 * machine, gives the same. A UUID of version 8, which is the one for ids of one's own making.
 */
export function sessionIdOf(key: string): string {
  const hex = hash("sha256", `kinfold session\n${key}`, "hex");
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
  ];
  return [...parts, hex.slice(20, 32)].join("-");
}

/** A number below 2^53 for the agent's own name of an entry; unique enough within one session. */
export function refNumber(ref: string): number {
  const bytes = hash("sha1", ref, "buffer");
  return (bytes.readUInt32BE(0) & 0x1f_ffff) * 0x1_0000_0000 + bytes.readUInt32BE(4);
}

export function inlineKey(hostKey: string, agentId: string): string {
  return `${hostKey}#${agentId}`;
}
