import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { OPERATIONS, type OperationSpec } from "../../contract/index.ts";
import { completionScript } from "../completion.ts";
import { loadCommand } from "../program.ts";
import { COMMANDS, STATUS } from "./table.ts";
import { nearest } from "../../text/nearest.ts";

const run = promisify(execFile);
/** Words that may follow `kinfold` in our texts although they are not commands. */
const WORDS_AFTER_THE_NAME = ["help", "is", "cannot", "goes", "did", "token", "at", "session", "probe"];

describe("the command table", () => {
  it("has every command that the operation table names", () => {
    const known = new Set(["kinfold", ...COMMANDS.map((row) => row.name)]);
    for (const [name, spec] of Object.entries<OperationSpec>(OPERATIONS)) {
      if (spec.cli !== undefined) assert.ok(known.has(spec.cli), `${name} is offered as "${spec.cli}"`);
    }
  });
  it("names each command once and each of its options once", () => {
    const names = COMMANDS.map((row) => row.name);
    assert.equal(new Set(names).size, names.length);
    for (const row of COMMANDS) {
      const flags = row.options.flatMap((option) => option.flags.match(/--?[\w-]+/g) ?? []);
      assert.equal(new Set(flags).size, flags.length, row.name);
    }
  });
  it("has one row for every file in commands/, and that file has a run function", async () => {
    const rows = [STATUS, ...COMMANDS];
    const files = readdirSync(new URL("../commands", import.meta.url)).filter(
      (file) => !file.includes(".test."),
    );
    assert.deepEqual(rows.map(({ name }) => `${name}.ts`).toSorted(), files.toSorted());
    for (const row of rows) assert.equal(typeof (await loadCommand(row)).run, "function", row.name);
  });
  it("has every command that a message of the product advises", () => {
    const known = new Set([...COMMANDS.map((row) => row.name), ...WORDS_AFTER_THE_NAME]);
    const source = fileURLToPath(new URL("../..", import.meta.url));
    for (const file of readdirSync(source, { recursive: true, encoding: "utf8" })) {
      if (!file.endsWith(".ts") || /(\.(test|spec)\.ts$|\/testing\/)/.test(file)) continue;
      const text = readFileSync(join(source, file), "utf8");
      // After a colon, a quote, a backtick or a bracket, `kinfold <word>` is meant as a command.
      for (const [, word = ""] of text.matchAll(/(?:: |["'`(])kinfold ([a-z]+)\b/g))
        assert.ok(known.has(word), `${file}: kinfold ${word}`);
    }
  });
  it("gives examples that are commands of the table", () => {
    for (const row of COMMANDS)
      for (const [line] of row.examples) assert.match(line, new RegExp(`kinfold ${row.name}\\b`), line);
  });
});

describe("completion", () => {
  it("names every command and option in every shell", () => {
    for (const shell of ["bash", "zsh", "fish"] as const) {
      const script = completionScript(shell);
      for (const row of COMMANDS) assert.ok(script.includes(row.name), `${shell}: ${row.name}`);
      assert.ok(script.includes("read-only"), `${shell}: choices`);
    }
  });
  it("completes commands, options and choices in a real bash", async () => {
    const ask = async (...words: string[]): Promise<string[]> => {
      const script = `${completionScript("bash")}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _kinfold; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout } = await run("bash", ["-c", script]);
      return stdout.trim().split("\n");
    };
    assert.deepEqual(await ask("kinfold", "sp"), ["spawn"]);
    assert.deepEqual(await ask("kinfold", "spawn", "--perm"), ["--permission"]);
    assert.deepEqual(await ask("kinfold", "spawn", "--permission", "re"), ["read-only"]);
    assert.deepEqual(await ask("kinfold", "completion", "z"), ["zsh"]);
  });
});

describe("the nearest word", () => {
  const names = COMMANDS.map((row) => row.name);
  it("is found despite a typo, swapped letters or a missing part", () => {
    assert.equal(nearest("spwan", names)[0], "spawn");
    assert.equal(nearest("cancle", names)[0], "cancel");
    assert.equal(nearest("comp", names)[0], "completion");
  });
  it("is absent if no word is similar", () => {
    assert.deepEqual(nearest("xyzzy", names), []);
  });
});
