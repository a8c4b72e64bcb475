import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, it } from "node:test";
import { tidy } from "../../tidy.ts";

const made: string[] = [];
after(() => made.forEach((root) => rmSync(root, { recursive: true, force: true })));

export function plant(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), "kinfold-tidy-"));
  made.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

export function found(files: Record<string, string>): string[] {
  return tidy(plant(files)).map(({ path, line, text }) => `${path}:${line}: ${text}`);
}

/** Planted violations: the path and text of a file, and what the finding must say. */
export type Cases = Record<string, readonly [path: string, text: string, says: RegExp]>;

export function refuses(cases: Cases): void {
  for (const [name, [path, text, says]] of Object.entries(cases)) {
    it(`refuses ${name}`, () => {
      const findings = found({ [path]: text });
      assert.equal(findings.length, 1, findings.join("\n"));
      assert.match(findings[0] ?? "", says);
    });
  }
}

export function accepts(cases: Record<string, readonly [path: string, text: string]>): void {
  for (const [name, [path, text]] of Object.entries(cases)) {
    it(`accepts ${name}`, () => assert.deepEqual(found({ [path]: text }), []));
  }
}
