import type { Spans, Tail } from "./shape.ts";

export const BLANKS_MAX = 8;

export interface Looking {
  readonly known: Spans;
  readonly tail: Tail | null;
}

export interface Name {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface Separator {
  readonly sign: string;
  readonly value: number;
  readonly isTight: boolean;
  readonly quotedName: boolean;
}

const SIGN = /[?!]?:(?![:/])|:=|=>|={1,3}(?!>)|!={1,2}|%3[AD]|,/iy;

export function separatorBehind(text: string, nameEnd: number): Separator | null {
  const closed = run(text, nameEnd, { is: isClosing, max: BLANKS_MAX });
  const at = run(text, closed, { is: isBlank, max: BLANKS_MAX });
  SIGN.lastIndex = at;
  const sign = SIGN.exec(text)?.[0];
  if (sign === undefined) return null;
  const after = bold(text, at + sign.length);
  const value = run(text, after, { is: isBlank, max: BLANKS_MAX });
  const isTight = at === nameEnd && value === after;
  return { sign: sign.replace(/^[?!]:/, ":"), value, isTight, quotedName: closed > nameEnd };
}

/** `**Password:** …`: skips the asterisks that end the bold text after the colon. */
function bold(text: string, at: number): number {
  return text[at] === "*" ? stick(/\*{1,2}(?=[ \t])/y, text, at) : at;
}

export function stick(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

export function run(
  text: string,
  start: number,
  { is, max }: { is: (char: string) => boolean; max: number },
): number {
  let at = start;
  while (at < text.length && at - start < max && is(text[at] as string)) at += 1;
  return at;
}

export const isBlank = (char: string): boolean => char === " " || char === "\t";
const isClosing = (char: string): boolean => /["'`*\\\]]/.test(char);
