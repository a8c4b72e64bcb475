import { hash } from "node:crypto";

/** The same key gives the same id on every machine: a UUID of version 8, which is for custom ids. */
export function sessionIdOf(key: string): string {
  const hex = hash("sha256", `kinfold session\n${key}`, "hex");
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  const last = `${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${last}`;
}

/** Hashes an entry's name to a number below 2^53. Runs for every entry, so it must be fast. */
export function refNumber(ref: string): number {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let at = 0; at < ref.length; at += 1) {
    const code = ref.charCodeAt(at);
    high = Math.imul(high ^ code, 2_654_435_761);
    low = Math.imul(low ^ code, 1_597_334_677);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return 0x1_0000_0000 * (low & 0x1f_ffff) + (high >>> 0);
}

export function inlineKey(hostKey: string, agentId: string): string {
  return `${hostKey}#${agentId}`;
}
