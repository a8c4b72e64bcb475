import { asData as dataOf, cutBefore, firstChars, folded, oneLine, visible } from "../text/fence.ts";

/** One entry of a brief: a label that we write, and a body that another author wrote. */
export interface Label {
  readonly label: string;
  readonly body: string;
  /** `data`: text from tools and other sessions, shown in a fence. */
  readonly form?: "prose" | "data";
}

/** Escapes text so that it cannot look like ours or expand an `@path`. Keeps the last `charsMax` chars. */
export function asData(text: string, charsMax: number = Number.POSITIVE_INFINITY): string {
  const read = text.length > charsMax * READ_AHEAD ? text.slice(-charsMax * READ_AHEAD) : text;
  const clean = escaped(
    dataOf(read)
      .replace(/^\s*\n/, "")
      .trimEnd(),
  );
  if (clean.length <= charsMax && read.length === text.length) return clean;
  return `…${clean.slice(beginAt(clean, Math.max(0, clean.length - charsMax + 1)))}`;
}

/** Makes another author's text safe to put inside one of our lines. */
export function field(text: string, max: number): string {
  return escaped(oneLine(text, max));
}

export function inline(text: string): string {
  return asData(folded(visible(text)));
}

/** Puts prose after the label, and data below it. Indents the lines below a label deeper than any label. */
export function labelled({ label, body, form }: Label, fenceId: string): string {
  if (form === undefined) return `  ${label}`;
  const below = body.replace(/\n(?=.)/g, "\n    ");
  if (form === "prose") return `  ${label}: ${below}`;
  return `  ${label}:\n    <tool-output id="${fenceId}">\n    ${below}\n    </tool-output id="${fenceId}">`;
}

/** Returns the end of an entry, at most `charsMax` characters; null if too little would fit. */
export function tailOf(entry: Label, charsMax: number, fenceId: string): string | null {
  let keep = charsMax;
  while (keep >= LEAST && entry.form !== undefined) {
    const from = beginAt(entry.body, Math.max(0, entry.body.length - keep));
    const text = labelled({ ...entry, body: `…${entry.body.slice(from)}` }, fenceId);
    if (text.length <= charsMax) return text;
    keep -= Math.max(1, text.length - charsMax);
  }
  return null;
}

/** Returns the beginning of a text, cut so that `dress(beginning)` has at most `charsMax` characters. */
export function headOf(text: string, charsMax: number, dress: (text: string) => string): string | null {
  let keep = charsMax;
  while (keep >= LEAST) {
    const dressed = dress(`${firstChars(text, keep)}…`);
    if (dressed.length <= charsMax) return dressed;
    keep -= Math.max(1, dressed.length - charsMax);
  }
  return null;
}

function escaped(text: string): string {
  return text.replace(OUR_LINE, String.raw`$1\$2`).replace(BARE_AT, String.raw`\@`);
}

/** `asData` reads up to this many times the characters it shows, because cleaning removes some of them. */
const READ_AHEAD = 4;
/** A shorter remainder is not worth showing. */
const LEAST = 40;

/** Returns the first index from `at` on that splits neither a code point nor a backslash escape. */
function beginAt(text: string, at: number): number {
  let from = at;
  while (from < text.length && (cutBefore(text, from) < from || (from > 0 && text[from - 1] === "\\")))
    from += 1;
  return from;
}

const BARE_AT = /(?<!\\)@/g;
/** Lines that could pass for ours: headings and their underlines, code fences, labels, `[Kinfold]` lines. */
const OUR_LINE =
  /^([ \t>]*)(#|`{3}|~{3}|(?:checkpoint|recent context|focal entities|active constraints)\s*:|\[kinfold\]|(?:=+|-{2,})[ \t]*$)/gim;

/** Puts the prompt first, because an agent recognizes its own commands only in the first line. */
export function withInstructions(
  prompt: string,
  work: { readonly profile: string; readonly instructions: string | null },
): string {
  if (work.instructions === null) return prompt;
  return `${prompt}\n\n---\nHow to work (profile "${work.profile}"):\n${work.instructions}`;
}
