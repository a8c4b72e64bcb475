import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { accepts, found, refuses } from "./testing/plant.ts";

describe("imports point one way", () => {
  refuses({
    "domain → store": [
      "src/domain/a.ts",
      'import { s } from "../store/port/store.ts";\ns();\n',
      /a\.ts:1: domain may not import store\/port\/store\.ts/,
    ],
    "drivers → store": [
      "src/drivers/a.ts",
      'import type { S } from "../store/port/store.ts";\nexport type T = S;\n',
      /drivers may not import store/,
    ],
    "operations → engine": [
      "src/operations/a.ts",
      'import { t } from "../engine/turn.ts";\nt();\n',
      /operations may not import engine/,
    ],
    "engine → operations": [
      "src/engine/a.ts",
      'import { s } from "../operations/spawn.ts";\ns();\n',
      /engine may not import operations/,
    ],
    "operations → a store behind the port": [
      "src/operations/a.ts",
      'import { o } from "../store/sqlite/open.ts";\no();\n',
      /may not import store\/sqlite/,
    ],
    "server → store": [
      "src/server/a.ts",
      'import type { S } from "../store/port/store.ts";\nexport type T = S;\n',
      /server may not import store/,
    ],
    "client → operations": [
      "src/client/a.ts",
      'import { s } from "../operations/spawn.ts";\ns();\n',
      /client may not import operations/,
    ],
    "cli → operations": [
      "src/cli/a.ts",
      'import { s } from "../operations/spawn.ts";\ns();\n',
      /cli may not import operations/,
    ],
    "config → cli": [
      "src/config/a.ts",
      'import { s } from "../cli/text.ts";\ns();\n',
      /config may not import cli/,
    ],
    "a layer → the composition root": [
      "src/server/a.ts",
      'import { d } from "../daemon.ts";\nd();\n',
      /server may not import daemon\.ts/,
    ],
    "a dynamic import": [
      "src/engine/a.ts",
      'export const o = await import("../operations/spawn.ts");\n',
      /engine may not import operations/,
    ],
    "an import in a type": [
      "src/engine/a.ts",
      'export type O = import("../operations/spawn.ts").O;\n',
      /engine may not import operations/,
    ],
    "a re-export": [
      "src/contract/a.ts",
      'export * from "../domain/session.ts";\n',
      /contract may not import domain/,
    ],
    "a value where only types may pass": [
      "src/store/a.ts",
      'import { d } from "../domain/session.ts";\nd();\n',
      /store may not import domain/,
    ],
    "a package the layer has no need of": [
      "src/contract/a.ts",
      'import { p } from "pino";\np();\n',
      /contract may not import the package pino/,
    ],
    "handlebars outside the template": [
      "src/domain/a.ts",
      'import { c } from "handlebars";\nc();\n',
      /may not import the package handlebars/,
    ],
    "Node in what a browser runs": [
      "src/client/a.ts",
      'import { f } from "node:fs";\nf();\n',
      /client may not import node:fs/,
    ],
    "a test's tools in code": [
      "src/server/a.ts",
      'import { f } from "../../test/daemon.ts";\nf();\n',
      /outside src/,
    ],
    "a folder that is no layer": [
      "src/services/a.ts",
      "export const a = 1;\n",
      /src\/services is not a layer/,
    ],
  });
  accepts({
    "types of the domain in the store": [
      "src/store/a.ts",
      'import type { S } from "../domain/session.ts";\nexport type T = S;\n',
    ],
    "the store's port in operations": [
      "src/operations/a.ts",
      'import type { S } from "../store/port/store.ts";\nexport type T = S;\n',
    ],
    "a path into an allowed package": [
      "src/drivers/acp/a.ts",
      'import { s } from "@agentclientprotocol/sdk/unstable";\ns();\n',
    ],
    "handlebars in the template": ["src/domain/template.ts", 'import { c } from "handlebars";\nc();\n'],
    "the daemon in the command that starts it": [
      "src/cli/commands/up.ts",
      'await import("../../daemon.ts");\n',
    ],
    "everything in the composition root": [
      "src/daemon.ts",
      'import { s } from "./store/sqlite/open.ts";\nimport { p } from "pino";\np(s);\n',
    ],
    "a test that looks from anywhere": [
      "src/domain/a.test.ts",
      'import { s } from "../store/port/store.ts";\ns();\n',
    ],
  });
});

describe("cycles", () => {
  const uses = (path: string): string => `import { a } from "${path}";\nexport const b = a;\n`;
  const types = (path: string): string => `import type { T } from "${path}";\nexport type T = T;\n`;

  it("refuses a cycle of values, and prints it once with every file on the way", () => {
    const files = {
      "src/engine/a.ts": uses("./b.ts"),
      "src/engine/b.ts": uses("./c.ts"),
      "src/engine/c.ts": uses("./a.ts"),
      "src/engine/d.ts": uses("./a.ts"),
    };
    assert.deepEqual(found(files), [
      "src/engine/a.ts:1: a cycle of imports: src/engine/a.ts → src/engine/b.ts → src/engine/c.ts → src/engine/a.ts",
    ]);
  });
  it("refuses a cycle of values that is closed by a dynamic import or a re-export", () => {
    const lazy = { "src/engine/a.ts": uses("./b.ts"), "src/engine/b.ts": 'await import("./a.ts");\n' };
    const through = { "src/engine/a.ts": uses("./b.ts"), "src/engine/b.ts": 'export * from "./a.ts";\n' };
    for (const files of [lazy, through]) assert.match(found(files).join(), /a cycle of imports: /);
  });
  it("refuses a cycle that types close across folders", () => {
    const files = { "src/cli/a.ts": uses("./commands/b.ts"), "src/cli/commands/b.ts": types("../a.ts") };
    assert.deepEqual(found(files), [
      "src/cli/a.ts:1: a cycle of type imports across folders: src/cli/a.ts → src/cli/commands/b.ts → src/cli/a.ts",
    ]);
  });
  it("accepts types that refer to each other within one folder, and files that share an import", () => {
    const files = {
      "src/engine/a.ts": types("./b.ts"),
      "src/engine/b.ts": types("./a.ts"),
      "src/engine/c.ts": uses("./a.ts"),
      "src/engine/turn/d.ts": uses("../c.ts"),
      "src/engine/turn/e.ts": uses("../c.ts"),
    };
    assert.deepEqual(found(files), []);
  });
});
