/** "1 file", "3 files". */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** "812", "9.4k", "41k", "1.9M". */
export function tokens(n: number): string {
  if (!(n > 0)) return "0";
  if (n < 999.5) return String(Math.round(n));
  if (n < 999_500) return `${short(n / 1000)}k`;
  return `${short(n / 1_000_000)}M`;
}

/** "812 B", "9.4 KB", "41 KB", "1.9 MB". */
export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return `${short(n / 1024)} KB`;
  return n < 1024 ** 3 ? `${short(n / 1024 ** 2)} MB` : `${short(n / 1024 ** 3)} GB`;
}

/** How much of a text that was cut is shown: "first 4 of 11 KB". */
export function shownPart(shownBytes: number, allBytes: number): string {
  return `first ${Math.max(1, Math.round(shownBytes / 1024))} of ${Math.ceil(allBytes / 1024)} KB`;
}

export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

function short(n: number): string {
  return n < 9.95 ? String(Math.round(n * 10) / 10) : String(Math.round(n));
}

const encoder = new TextEncoder();
