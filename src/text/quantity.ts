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

export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** The longest beginning of at most this many bytes that ends at a code point. */
export function firstBytes(text: string, bytesMax: number): string {
  const room = new Uint8Array(bytesMax);
  return text.slice(0, encoder.encodeInto(text, room).read);
}

function short(n: number): string {
  return n < 9.95 ? String(Math.round(n * 10) / 10) : String(Math.round(n));
}

const encoder = new TextEncoder();
