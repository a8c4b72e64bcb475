import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import type { Effective } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { folderVerdict } from "../../system/folder.ts";
import type { OperationDeps } from "../deps.ts";
import { isWithin, type KeyReach } from "../access/authority.ts";

/** Above whom nothing may be decided: the parent, and the API key that asks. */
export interface Under {
  readonly parent: SessionRecord | null;
  readonly key: KeyReach | null;
}

export async function decideFolder(
  deps: OperationDeps,
  asked: string | undefined,
  under: Under,
): Promise<string> {
  const { parent } = under;
  const base = parent?.cwd ?? process.cwd();
  const folder = path.resolve(base, asked ?? base);
  // A folder that cannot be reached is refused as one that does not exist.
  const [found, real] = await Promise.all([
    stat(folder).catch(() => null),
    realpath(folder).catch(() => null),
  ]);
  if (found === null || real === null || !found.isDirectory()) {
    const what = found === null || real === null ? "does not exist" : "is not a folder";
    throw new Refusal("cwd_not_found", `The folder ${folder} ${what}. Name one that exists.`, {
      cwd: folder,
    });
  }
  const { roots } = deps.config;
  const verdict = folderVerdict(real, { roots, closed: deps.privateFolders });
  const granted = verdict === "allowed" ? outsideOf(real, under) : null;
  if (verdict === "allowed" && granted === null) return real;
  if (asked === undefined && parent === null && verdict === "closed") {
    throw new Refusal(
      "cwd_not_allowed",
      `Say where it works: "cwd" is missing, and the daemon's own folder is not for sessions.`,
      { cwd: real, roots },
    );
  }
  const allowed =
    granted?.join(", ") ?? (verdict === "closed" ? "any folder but Kinfold's own home" : roots.join(", "));
  throw new Refusal("cwd_not_allowed", `No session may work in ${real}. Allowed: ${allowed}.`, {
    cwd: real,
    roots,
  });
}

/** The folders of the parent or of the key that this one is outside of; null where it is inside. */
function outsideOf(real: string, { parent, key }: Under): readonly string[] | null {
  const lists = [parent?.effective.roots, key?.roots].filter((each) => each != null);
  return lists.find((each) => !isWithin(real, each)) ?? null;
}

/** Where its descendants may work: in what both its parent and the key that asks have. */
export function rootsOf({ parent, key }: Under): Pick<Effective, "roots"> {
  const above = parent?.effective.roots ?? null;
  const own = key?.roots ?? null;
  if (above === null && own === null) return {};
  const both = [
    ...(above ?? own ?? []).filter((each) => isWithin(each, own)),
    ...(own ?? []).filter((each) => isWithin(each, above)),
  ];
  return { roots: [...new Set(both)] };
}
