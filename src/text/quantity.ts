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

/** Says how much of a cut text is shown: "first 4 of 11 KB". */
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

/** "840 ms", "1.8 s", "6 min 12 s", "2 h 3 min", "1 d 4 h". */
export function duration(ms: number): string {
  if (!(ms > 0)) return "0 s";
  if (ms < 1000) return ms < 999.5 ? `${Math.round(ms)} ms` : "1 s";
  if (ms < 9950) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return pair([Math.floor(seconds / 60), "min"], [seconds % 60, "s"]);
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return pair([Math.floor(minutes / 60), "h"], [minutes % 60, "min"]);
  const hours = Math.round(minutes / 60);
  return pair([Math.floor(hours / 24), "d"], [hours % 24, "h"]);
}

function pair(first: [number, string], second: [number, string]): string {
  const head = `${first[0]} ${first[1]}`;
  return second[0] === 0 ? head : `${head} ${second[0]} ${second[1]}`;
}
