import { shortId } from "../contract/index.ts";

/** "40 s", "6 min 12 s", "3 h 5 min", "2 days". */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** Text of another session inside a sentence of ours: one line, short, without marks that mean something. */
export function oneLine(text: string, charactersMax: number): string {
  const plain = text
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ")
    .replaceAll(/\s+/g, " ")
    .replaceAll("<!--", "<! --")
    .replaceAll("`", "'")
    .replaceAll(/@(?=\S)/g, String.raw`\@`)
    .trim();
  const characters = [...plain];
  return characters.length <= charactersMax ? plain : `${characters.slice(0, charactersMax - 1).join("")}…`;
}

/** Text of another session inside its fence: it can neither close it, nor be a mark of ours, nor name a file. */
export function asData(text: string): string {
  return text
    .replaceAll(/<!--(?=\s*(?:trigger|message)\s*:)/gi, String.raw`<\!--`)
    .replaceAll(/<(\s*\/?\s*child-output)/gi, String.raw`<\$1`)
    .replaceAll(/(?<!\\)@(?=\S)/g, String.raw`\@`);
}

/** How a session is named to an agent. */
export function quoted(name: string | null, sessionId: string): string {
  return name === null ? shortId(sessionId) : `"${name}" (${shortId(sessionId)})`;
}

/** Cuts at a character border so that text and mark fit into the bytes. */
export function shorten(text: string, bytesMax: number, mark: string): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= bytesMax) return text;
  let end = Math.max(0, bytesMax - Buffer.byteLength(mark));
  // 10xxxxxx continues a character, so the cut moves back to where one begins.
  while (end > 0 && ((bytes[end] ?? 0) & 0b1100_0000) === 0b1000_0000) end--;
  return bytes.subarray(0, end).toString("utf8") + mark;
}

export function inKilobytes(bytes: number): string {
  return `${Math.max(1, Math.round(bytes / 1024))}`;
}
