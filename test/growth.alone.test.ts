import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveRedactor } from "../src/secrets/redact-live.ts";
import { ATOMS, SCANNERS } from "./support/foreign-text.ts";

/**
 * Foreign text must be processed in time proportional to its length. Every scanner gets its worst-case texts,
 * made of pieces that open something and never close it. The test measures the processor time of this thread,
 * so that a busy machine does not matter.
 */

const LENGTH = 32_768;
/** A scan faster than this passes without a comparison: a quadratic scan would take seconds. */
const FAST_MS = 25;
/** A text four times as long may take eight times the time; a quadratic scan takes sixteen times. */
const RATIO_MAX = 8;
/** The system may count processor time in steps of this length. A shorter time may be measured as 0. */
const STEP_MS = 10;

for (const [name, scan] of Object.entries(SCANNERS)) {
  test(`takes time proportional to the text: ${name}`, () => {
    for (const atom of ATOMS) {
      for (const make of SHAPES) {
        if (cpuMs(() => scan(make(atom, LENGTH))) < FAST_MS) continue;
        const [short, long] = [least(scan, make(atom, LENGTH / 4)), least(scan, make(atom, LENGTH))];
        const told = `${JSON.stringify(make(atom, 40))}: ${short.toFixed(1)} ms, four times as long ${long.toFixed(1)} ms`;
        assert.ok(long < FAST_MS || long / Math.max(short, STEP_MS) < RATIO_MAX, told);
      }
    }
  });
}

/**
 * A live redactor holds back the end of the text. That end must not grow with the text. Only texts much
 * longer than those above would show such growth.
 */
test("takes time proportional to the text: redact of live text of megabytes", () => {
  const scan = (text: string): string => {
    const live = new LiveRedactor();
    let shown = "";
    for (let at = 0; at < text.length; at += 16_384) shown += live.push(text.slice(at, at + 16_384));
    return shown + live.flush();
  };
  for (const atom of ENDLESS) {
    const [short, long] = [512, 2_048].map((kb) => least(scan, SHAPES[0]!(atom, kb * 1_024)));
    const told = `${JSON.stringify(atom)}: ${short} ms, four times as long ${long} ms`;
    assert.ok((long ?? 0) / Math.max(short ?? 0, FAST_MS) < RATIO_MAX, told);
  }
});

const ENDLESS = ["password=", "token=", 'name="API_KEY" value', "password: 'x ", "//", "QUJD", "a://a:a"];

/** The atom repeated; the atom followed by its last character repeated; and the atom followed by spaces. */
const SHAPES: readonly ((atom: string, length: number) => string)[] = [
  (atom, length) => atom.repeat(Math.ceil(length / atom.length)).slice(0, length),
  (atom, length) => `${atom}${atom.slice(-1).repeat(length)}\u0001`,
  (atom, length) => `${atom}${" ".repeat(length)}\u0001`,
];

function least(scan: (text: string) => unknown, text: string): number {
  let least = Infinity;
  // Measures up to three times, but only once if the scan takes 250 ms or more.
  for (let run = 0; run < 3 && (run === 0 || least < 250); run += 1)
    least = Math.min(
      least,
      cpuMs(() => scan(text)),
    );
  return least;
}

function cpuMs(run: () => unknown): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
