import { asData as dataOf, cutBefore, firstChars, folded, oneLine, visible } from "../text/fence.ts";

/** One entry of a brief: a line of ours, and what somebody wrote. */
export interface Label {
  readonly label: string;
  readonly body: string;
  /** `data`: what tools and other sessions wrote stands in a fence. */
  readonly form?: "prose" | "data";
}

/**
 * Text that cannot pass for ours: no delivery id, no fence, no heading or label of a block, no
 * path that an agent would expand. With `charsMax` only its end, which is what is newest.
 */
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

/** A short text of somebody in a line of ours. */
export function field(text: string, max: number): string {
  return escaped(oneLine(text, max));
}

/** The same in one line. */
export function inline(text: string): string {
  return asData(folded(visible(text)));
}

/** An entry whole: its first line behind the label, the rest and all data below and deeper than any label. */
export function labelled({ label, body, form }: Label, fenceId: string): string {
  if (form === undefined) return `  ${label}`;
  const below = body.replace(/\n(?=.)/g, "\n    ");
  if (form === "prose") return `  ${label}: ${below}`;
  return `  ${label}:\n    <tool-output id="${fenceId}">\n    ${below}\n    </tool-output id="${fenceId}">`;
}

/** The end of an entry in at most so many characters, at a code point; null where not even a little fits. */
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

/** The beginning of a text that, once dressed, has at most so many characters. */
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

/** How much more is read than is kept: bounded for a flood of what gets stripped. */
const READ_AHEAD = 4;
/** A smaller rest of a text tells nobody anything. */
const LEAST = 40;

/** Where a text may begin, from here on: at a code point, and not behind a backslash that escapes it. */
function beginAt(text: string, at: number): number {
  let from = at;
  while (from < text.length && (cutBefore(text, from) < from || (from > 0 && text[from - 1] === "\\")))
    from += 1;
  return from;
}

const BARE_AT = /(?<!\\)@/g;
/** Headings, code fences, labels of a block, the daemon's own lines, and the underline of a heading. */
const OUR_LINE =
  /^([ \t>]*)(#|`{3}|~{3}|(?:checkpoint|recent context|focal entities|active constraints)\s*:|\[kinfold\]|(?:=+|-{2,})[ \t]*$)/gim;

/** The task first, so that an agent's own commands in its first line stay what they are. */
export function withInstructions(
  prompt: string,
  work: { readonly profile: string; readonly instructions: string | null },
): string {
  if (work.instructions === null) return prompt;
  return `${prompt}\n\n---\nHow to work (profile "${work.profile}"):\n${work.instructions}`;
}
