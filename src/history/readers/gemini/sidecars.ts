import { hash } from "node:crypto";
import { join } from "node:path";
import { readSmall, readSmallObject } from "../../lines/byte-file.ts";
import { asObject, asText, type JsonObject } from "../../lines/value.ts";
import type { Extra } from "./layout.ts";
import type { GeminiFold } from "./notes.ts";

/**
 * Finds the working folder. The project's marker file decides; without one, a folder that is already known is
 * kept. Otherwise the folder that was named to the model is used. But if its hash is not the project's hash,
 * a folder from the registry is preferred.
 */
export async function foldSidecars({ facts, notes, found }: GeminiFold): Promise<void> {
  const { project, parentId } = found.extra as Extra;
  if (facts.isSubagent && parentId !== null) {
    facts.parent = { id: parentId, callId: null, how: "its file is in its parent's folder" };
  }
  const marker = (await readSmall(join(project, ".project_root"), PATH_BYTES_MAX))?.trim();
  if (marker) {
    facts.cwd = marker;
    return;
  }
  if (facts.cwd !== null) return;
  const isProven = (path: string): boolean => hash("sha256", path, "hex") === notes.projectHash;
  if (notes.saidFolder !== null && !isProven(notes.saidFolder)) {
    const registry = await readSmallObject(join(found.root, "projects.json"), REGISTRY_BYTES_MAX);
    facts.cwd = registered(asObject(registry?.["projects"]) ?? {}, { project, isProven });
  }
  facts.cwd ??= notes.saidFolder;
}

const PATH_BYTES_MAX = 64 * 1024;
const REGISTRY_BYTES_MAX = 8 * 1024 * 1024;

/** The registry maps a project's path to the name of the folder in which Gemini keeps its sessions. */
function registered(
  projects: JsonObject,
  { project, isProven }: { project: string; isProven: (path: string) => boolean },
): string | null {
  const paths = Object.keys(projects);
  const named = paths.find((path) => {
    const name = asText(projects[path]);
    return name !== null && project.endsWith(`/${name}`);
  });
  return paths.find(isProven) ?? named ?? null;
}
