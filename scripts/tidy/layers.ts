import { posix } from "node:path";
import { type Node, SyntaxKind } from "typescript/unstable/ast";
import {
  isCallExpression,
  isExportDeclaration,
  isImportDeclaration,
  isImportTypeNode,
  isLiteralTypeNode,
  isStringLiteral,
} from "typescript/unstable/ast/is";
import { type CodeFile, type Finding, finding, isTest } from "./tree.ts";

/** The imports that the files of one folder may have. Names are folders below `src`, or files in them. */
interface Layer {
  readonly may: readonly string[];
  /** Folders from which only types may be imported. */
  readonly types?: readonly string[];
  readonly packages: readonly string[];
  /** Additional imports for single files. */
  readonly only?: Readonly<Record<string, readonly string[]>>;
  /** Forbids Node's modules. Set if the folder does no I/O or also runs in a browser. */
  readonly noNode?: true;
}

/** The import table, which `ARCHITECTURE.md` prints. A folder of `src` that has no row fails the check. */
export const LAYERS: Readonly<Record<string, Layer>> = {
  text: { may: [], packages: [], noNode: true },
  system: { may: [], packages: ["uuidv7"] },
  secrets: { may: ["text"], packages: [], noNode: true },
  contract: { may: [], packages: ["zod"], noNode: true },
  search: { may: ["text", "contract"], packages: [], noNode: true },
  domain: {
    may: ["contract", "text", "secrets", "search"],
    packages: [],
    only: { "template.ts": ["handlebars", "node:module"] },
    noNode: true,
  },
  store: {
    may: ["contract", "text", "secrets", "search", "system", "log.ts"],
    types: ["domain"],
    packages: ["pg"],
  },
  drivers: {
    may: ["contract", "text", "system", "log.ts"],
    types: ["domain"],
    packages: ["@agentclientprotocol/sdk", "eventsource-parser"],
  },
  history: { may: ["contract", "text", "system", "log.ts"], types: ["domain"], packages: [] },
  import: {
    may: ["contract", "text", "secrets", "system", "domain", "history", "store/port", "log.ts"],
    packages: [],
  },
  workspace: { may: ["contract", "text", "system", "log.ts"], packages: [] },
  attach: { may: ["contract", "text", "system"], packages: [] },
  kernel: {
    may: ["contract", "text", "secrets", "system", "domain", "store/port", "log.ts"],
    packages: [],
  },
  operations: {
    may: [
      "contract",
      "text",
      "secrets",
      "search",
      "system",
      "domain",
      "kernel",
      "store/port",
      "history/port.ts",
      "workspace/port.ts",
      "log.ts",
    ],
    packages: [],
  },
  engine: {
    may: [
      "contract",
      "text",
      "secrets",
      "system",
      "domain",
      "kernel",
      "workspace",
      "import",
      "store/port",
      "drivers/port.ts",
      "history/port.ts",
      "log.ts",
    ],
    types: ["history"],
    packages: [],
    only: { "usage/worker.ts": ["history/index.ts"] },
  },
  server: {
    may: ["contract", "text", "system", "operations", "log.ts"],
    packages: ["hono", "@hono/node-server", "@modelcontextprotocol/server", "zod"],
  },
  client: { may: ["contract"], packages: ["eventsource-parser"], noNode: true },
  config: { may: ["contract", "text", "system"], packages: ["yaml"] },
  cli: {
    may: ["client", "contract", "text", "system", "config", "attach"],
    packages: ["commander", "yaml"],
    only: {
      "commands/up.ts": ["daemon.ts"],
      // Restore repairs a store that no daemon can open, so it cannot ask a daemon to do it.
      "commands/restore.ts": ["store/restore/restore.ts", "store/problem.ts", "log.ts"],
      "doctor/own-agents.ts": ["drivers/registry.ts", "drivers/vendors/index.ts", "log.ts"],
    },
  },
  "log.ts": { may: ["secrets"], packages: [] },
};

/** The composition root may import everything. */
const ROOT = "daemon.ts";

export function layerTable(): string {
  const rows = Object.entries(LAYERS).map(([name, layer]) => {
    const types = (layer.types ?? []).map((folder) => `${folder} (types only)`);
    const alone = Object.entries(layer.only ?? {}).map(([file, names]) => `${file}: ${names.join(", ")}`);
    const cells = [[...layer.may, ...types], layer.packages, alone].map((cell) => cell.join(", ") || "–");
    return `| ${[name, ...cells, layer.noNode ? "no" : "yes"].join(" | ")} |`;
  });
  const head = [
    "| Folder | may import | packages | one file only | Node's own modules |",
    "|---|---|---|---|---|",
  ];
  return [...head, ...rows, "| daemon.ts | everything | everything | – | yes |"].join("\n");
}

/** Checks imports against the table. Tests may import anything. */
export function checkImports(file: CodeFile): Finding[] {
  const name = layerOf(file.path);
  if (name === null || name === ROOT || isTest(file.path)) return [];
  const layer = LAYERS[name];
  if (layer === undefined) {
    const text = `src/${name} is not a layer: it has no row in the import table of scripts/tidy/layers.ts`;
    return [{ path: file.path, line: 1, text }];
  }
  return importsOf(file).flatMap(({ node, specifier, typeOnly }) => {
    const text = complaint(file.path, { name, layer, specifier, typeOnly });
    return text === null ? [] : [finding(file, node, text)];
  });
}

interface Asked {
  readonly name: string;
  readonly layer: Layer;
  readonly specifier: string;
  readonly typeOnly: boolean;
}

function complaint(path: string, { name, layer, specifier, typeOnly }: Asked): string | null {
  if (!specifier.startsWith(".")) return outsideComplaint(path, { name, layer, specifier, typeOnly });
  const target = posix.join(posix.dirname(path), specifier);
  const to = layerOf(target);
  if (to === name) return null;
  if (to === null) return `${name} may not import ${target}: it is outside src`;
  const inSrc = target.slice("src/".length);
  if (layer.may.some((name) => inSrc === name || inSrc.startsWith(`${name}/`))) return null;
  if (typeOnly && layer.types?.includes(to)) return null;
  if (only(path, name, layer).includes(inSrc)) return null;
  return `${name} may not import ${inSrc}; it may import ${allowed(layer)}`;
}

function outsideComplaint(path: string, { name, layer, specifier }: Asked): string | null {
  const ofNode = specifier.startsWith("node:");
  const scoped = specifier.startsWith("@");
  const wanted = ofNode ? specifier : specifier.split("/", scoped ? 2 : 1).join("/");
  if (only(path, name, layer).includes(wanted)) return null;
  if (!ofNode) return layer.packages.includes(wanted) ? null : `${name} may not import the package ${wanted}`;
  return layer.noNode ? `${name} may not import ${wanted}: it runs where there is no Node` : null;
}

function only(path: string, name: string, layer: Layer): readonly string[] {
  return layer.only?.[path.slice(`src/${name}/`.length)] ?? [];
}

function allowed(layer: Layer): string {
  return [...layer.may, ...(layer.types ?? []).map((folder) => `types of ${folder}`)].join(", ") || "nothing";
}

/** Returns the folder below `src` that contains a path, or the file directly below `src`. */
function layerOf(path: string): string | null {
  return path.startsWith("src/") ? (path.split("/")[1] ?? null) : null;
}

export interface Import {
  readonly node: Node;
  readonly specifier: string;
  readonly typeOnly: boolean;
}

export function importsOf(file: CodeFile): Import[] {
  return file.nodes.flatMap((node) => {
    const specifier = specifierOf(node);
    return specifier === null ? [] : [{ node, specifier, typeOnly: isTypeOnly(node) }];
  });
}

function specifierOf(node: Node): string | null {
  if (isImportDeclaration(node) || isExportDeclaration(node)) return literal(node.moduleSpecifier);
  if (isImportTypeNode(node)) return isLiteralTypeNode(node.argument) ? literal(node.argument.literal) : null;
  if (!isCallExpression(node) || node.expression.kind !== SyntaxKind.ImportKeyword) return null;
  return literal(node.arguments[0]);
}

function literal(node: Node | undefined): string | null {
  return node !== undefined && isStringLiteral(node) ? node.text : null;
}

function isTypeOnly(node: Node): boolean {
  if (isExportDeclaration(node)) return node.isTypeOnly;
  if (isImportDeclaration(node)) return node.importClause?.phaseModifier === SyntaxKind.TypeKeyword;
  return isImportTypeNode(node);
}
