import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { redact } from "./redact.ts";
import { LiveRedactor } from "./redact-live.ts";
import { sampleInnocents, sampleSecrets } from "./testing/sample-secret.ts";
import { INNOCENT, SPELLINGS } from "./testing/sample-spelling.ts";
import { checkProperty } from "../testing/seeds.ts";

const secrets = sampleSecrets(7);
const texts = [
  ...secrets.map(({ text }) => `Some words before it.\n${text} and words behind it,\nin more lines.\n`),
  ...secrets.map(({ text }) => text),
  ...SPELLINGS.map((text) => `Some words before it.\n${text} and words behind it,\nin more lines.\n`),
  ...SPELLINGS,
  ...INNOCENT,
];

function live(pieces: readonly string[]): string[] {
  const redactor = new LiveRedactor();
  return [...pieces.map((piece) => redactor.push(piece)), redactor.flush()];
}

it("live text that is cut anywhere is together what the whole text would be", () => {
  for (const text of texts) {
    const whole = redact(text);
    for (let cut = 0; cut <= text.length; cut++) {
      const shown = live([text.slice(0, cut), text.slice(cut)]);
      assert.equal(shown.join(""), whole, JSON.stringify([text.slice(0, cut), text.slice(cut)]));
    }
  }
});

it("live text that comes one character at a time shows no part of any secret", () => {
  for (const { kind, secret, text } of secrets) {
    const shown = live([...`Some words.\n${text} and more.\n`]).join("");
    assert.equal(shown, redact(`Some words.\n${text} and more.\n`), kind);
    for (let at = 0; at + 8 <= secret.length; at++) {
      const part = secret.slice(at, at + 8);
      assert.ok(!shown.includes(part), `${kind}: ${part} is in ${shown}`);
    }
  }
});

const lines = secrets.find(({ kind }) => kind === "private key")!.text.split("\n");
const [body, foot] = [lines.slice(1, -1), lines.at(-1) as string];
/** A key as it appears in a file, in a diff, in the output of `grep`, in an address and on a page. */
const KEYS = [
  ...["\n", "\r\n", "\n    ", "\n+", "\n-", "\n> ", "\nkey.pem:", "\nmy-key.pem-3-", "\nkey.pem:3:"].map(
    (by) => lines.join(by),
  ),
  ...["%0A", "<br>", "<br/>", String.raw`\n`, String.raw`\n-`].map((by) => lines.join(by)),
  // The same key without its first border line.
  ...["\n", "\n+", "\n-"].map((by) => [...body, foot].join(by)),
];

it("a private key is hidden wherever it stands, and live text of it that is cut anywhere shows none of it", () => {
  for (const key of KEYS) {
    const text = `$ cat it\n${key}\nand more words\n`;
    const whole = redact(text);
    for (const line of body) assert.ok(!whole.includes(line), JSON.stringify(whole));
    assert.match(whole, /^\$ cat it\n.{0,2}\[redacted: private key\]\nand more words\n$/);
    for (let cut = 0; cut <= text.length; cut++) {
      const shown = live([text.slice(0, cut), text.slice(cut)]);
      assert.equal(shown.join(""), whole, JSON.stringify([text.slice(0, cut), text.slice(cut)]));
      for (const line of body) assert.ok(!shown[0]?.includes(line));
    }
    for (const size of [1, 2, 3, 7, 50]) {
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
        text.slice(i * size, (i + 1) * size),
      );
      assert.equal(live(pieces).join(""), whole);
    }
  }
});

const word = fc.oneof(
  fc.constantFrom(...secrets.map(({ text }) => text)),
  fc.constantFrom(...SPELLINGS, ...INNOCENT),
  fc.constantFrom(...sampleInnocents(3, 100)),
  fc.constantFrom(
    ..."password: token= api_key Authorization: Bearer Cookie: a=b; \" ' is : = , -----BEGIN …".split(" "),
  ),
  fc.constantFrom(
    "password:",
    'secret = "',
    "--password",
    "the password is",
    "[redacted: password]",
    "-----",
  ),
  fc.lorem({ maxCount: 4 }),
);
const gap = fc.constantFrom(" ", "\n", "\t", "  ", "", "\n\n", ", ");

it("live text in any pieces is together what the whole text would be", () => {
  const text = fc.array(fc.tuple(word, gap), { maxLength: 12 }).map((parts) => parts.flat().join(""));
  const sizes = fc.array(fc.integer({ min: 1, max: 24 }), { minLength: 1, maxLength: 20 });
  checkProperty(
    import.meta.filename,
    fc.property(text, sizes, (whole, lengths) => {
      const pieces: string[] = [];
      for (let at = 0, i = 0; at < whole.length; i++) {
        const length = lengths[i % lengths.length] as number;
        pieces.push(whole.slice(at, at + length));
        at += length;
      }
      assert.equal(live(pieces).join(""), redact(whole));
    }),
    { numRuns: 2_000 },
  );
});

it("what is kept of an unfinished text shows no piece of a secret, wherever it is cut", () => {
  for (const { text, secret } of secrets) {
    const whole = `Before it. ${text} And after.`;
    for (let cut = 1; cut < whole.length; cut++) {
      const redactor = new LiveRedactor();
      const kept = redactor.push(whole.slice(0, cut)) + redactor.peek();
      const leaked = leakedOf(kept, secret);
      assert.ok(leaked.length < 8, JSON.stringify({ kept, leaked }));
    }
  }
});

/** Returns the longest prefix of the secret that the text ends with. */
function leakedOf(text: string, secret: string): string {
  for (let length = Math.min(text.length, secret.length); length > 0; length--) {
    if (text.endsWith(secret.slice(0, length))) return secret.slice(0, length);
  }
  return "";
}

it("what is kept of an unfinished text has its last word, and says it again when it goes on", () => {
  const redactor = new LiveRedactor();
  assert.equal(redactor.push("All tests pass."), "All tests ");
  assert.equal(redactor.peek(), "pass.");
  assert.equal(redactor.push(" Now the"), "pass. Now ");
  assert.equal(redactor.peek(), "the");
  redactor.push(" password is hunter");
  assert.equal(redactor.peek(), "");
});

it("words are shown as soon as the next one begins", () => {
  const redactor = new LiveRedactor();
  assert.equal(redactor.push("Look at the "), "Look at ");
  assert.equal(redactor.push("tests"), "");
  assert.equal(redactor.push(" now"), "the tests ");
  assert.equal(redactor.flush(), "now");
  assert.equal(redactor.push("A new one"), "A new ");
});

it("what has no end is held, and costs no more than its length", { timeout: 60_000 }, () => {
  const border = ["-----BEGIN", "PRIVATE", "KEY-----\n"].join(" ");
  for (const [first, next] of [
    [border, `${"QUJD".repeat(16)}\n`],
    ["password: '", "x y "],
    ["", "password: 'x "],
    ["", "QUJD"],
  ] as const) {
    const pieces = [first, ...Array.from({ length: 4_000 }, () => next)];
    assert.equal(live(pieces).join(""), redact(pieces.join("")));
  }
});

it("a secret that is longer than may be held is shown as its mark, and its rest not at all", () => {
  const redactor = new LiveRedactor();
  const piece = "password=".repeat(2_000);
  let shown = "";
  for (let n = 0; n < 20; n += 1) shown += redactor.push(piece);
  assert.match(shown, /^password=\[redacted: [a-z ]+\]$/, "before it has ended");
  shown += redactor.push(`${piece} and then`) + redactor.flush();
  assert.equal(shown, redact(`${piece.repeat(21)} and then`));
});
