/**
 * The characters of a text that a reader can see. Drops terminal sequences, control characters, lone
 * surrogates, and characters that are never shown: zero-width, bidi and tag characters. Keeps the two
 * joiners and one variation selector behind a character, which change how their neighbours look.
 * Linear in the length of the text.
 */
export function visible(text: string): string {
  return withoutTerminalSequences(text.toWellFormed())
    .replace(/\r\n?|[\u0085\u2028\u2029]/g, "\n")
    .replace(invisible, "")
    .replace(selectorRun, "$1");
}

/** Drops complete terminal sequences, for instance colours and links. A sequence that is not closed stays. */
export function withoutTerminalSequences(text: string): string {
  return text.replace(terminalSequence, "");
}

const escape = String.raw`\u001b`;
/**
 * A control string may not hold another opener: otherwise each of n openers without an end would be
 * searched to the end of the text, which is quadratic.
 */
const stringBody = String.raw`[^\u0007\u001b\u0090\u0098\u009c-\u009f\n]*`;
const terminalSequence = new RegExp(
  [
    String.raw`(?:${escape}\[|\u009b)[0-?]*[ -/]*[@-~]`,
    String.raw`(?:${escape}[\]PX^_]|[\u0090\u0098\u009d-\u009f])${stringBody}(?:\u0007|${escape}\\|\u009c)`,
    String.raw`${escape}[ -/]+[0-~]`,
  ].join("|"),
  "g",
);

const variationSelector = String.raw`\u180b-\u180d\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}`;
const invisible = new RegExp(
  String.raw`[[\p{Cc}--[\t\n]][\p{Default_Ignorable_Code_Point}--[\u200c\u200d${variationSelector}]]\ufff9-\ufffb]`,
  "gv",
);
/** More than one selector behind a character changes nothing that is shown, and can carry hidden text. */
const selectorRun = new RegExp(`([${variationSelector}])[${variationSelector}]+`, "gv");
