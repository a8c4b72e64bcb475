import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openapi } from "../src/server/openapi.ts";
import { cliPage } from "./reference/cli-page.ts";
import { configPage, eventsPage, operationsPage, refusalsPage } from "./reference/pages.ts";
import { withTable } from "./tidy.ts";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FOLDER = "docs/reference";

/** Returns every generated page, by its path from the root. */
export function madePages(): Map<string, string> {
  const pages = new Map([
    [`${FOLDER}/cli.md`, cliPage()],
    [`${FOLDER}/config.md`, configPage()],
    [`${FOLDER}/events.md`, eventsPage()],
    [`${FOLDER}/operations.md`, operationsPage()],
    [`${FOLDER}/refusals.md`, refusalsPage()],
    [`${FOLDER}/openapi.json`, `${JSON.stringify(openapi(), null, 2)}\n`],
  ]);
  const architecture = join(ROOT, "ARCHITECTURE.md");
  if (existsSync(architecture)) pages.set("ARCHITECTURE.md", withTable(readFileSync(architecture, "utf8")));
  return pages;
}

export function pagesOnDisk(): string[] {
  return readdirSync(join(ROOT, FOLDER)).map((name) => `${FOLDER}/${name}`);
}

if (import.meta.main) {
  const pages = madePages();
  for (const [path, text] of pages) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), text);
  }
  for (const path of pagesOnDisk()) if (!pages.has(path)) rmSync(join(ROOT, path));
  console.log(`${pages.size} pages generated.`);
}
