import path from "node:path";
import type { InputOf, OutputOf, Token } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { hashOf, newSecret } from "../../system/id.ts";
import type { TokenRecord } from "../../store/port/store.ts";
import type { Handler, OperationDeps } from "../deps.ts";

export const createToken: Handler<"createToken"> = async (deps, _caller, { input }) => {
  const secret = newSecret("kfk");
  const now = deps.now();
  const row: TokenRecord = {
    hash: hashOf(secret),
    kind: "outside",
    sessionId: null,
    rootId: null,
    fence: null,
    name: input.name,
    can: input.can,
    scope: input.scope,
    ceiling: input.ceiling,
    roots: rootsOf(input),
    createdAt: now,
    expiresAt: input.expiresInMs === null ? null : now + input.expiresInMs,
    revokedAt: null,
  };
  await deps.store.addToken(row);
  return { token: viewToken(row), secret };
};

export async function listTokens(deps: OperationDeps): Promise<OutputOf<"listTokens">> {
  const rows = await deps.store.read.tokens.outside();
  return { tokens: rows.map(viewToken) };
}

export const revokeToken: Handler<"revokeToken"> = async (deps, _caller, { input }) => {
  const rows = await deps.store.read.tokens.outside();
  const found = rows.filter((each) => idOf(each) === input.id || each.name === input.id);
  // An earlier, revoked key may have the same name.
  const row = found.find((each) => each.revokedAt === null) ?? found[0];
  if (row === undefined) {
    const names = rows.map((each) => each.name).join(", ") || "none";
    throw new Refusal("not_found", `No API key "${input.id}". There are: ${names}.`);
  }
  const now = deps.now();
  await deps.store.revokeToken(row.hash, now);
  return { token: viewToken({ ...row, revokedAt: row.revokedAt ?? now }) };
};

/** A key that may start sessions must name its folders. To allow any folder, it names `/`. */
function rootsOf({ can, roots }: InputOf<"createToken">): string[] | null {
  if (roots === null && can.includes("spawn")) {
    throw new Refusal(
      "invalid_input",
      'A key that may spawn needs the folders its sessions may work in, such as roots: ["/srv/project"]; ["/"] is any folder.',
      { field: "roots" },
    );
  }
  const relative = roots?.find((each) => !path.isAbsolute(each));
  if (relative === undefined) return roots?.map((each) => path.resolve(each)) ?? null;
  throw new Refusal("invalid_input", `The folder "${relative}" of the key is not absolute.`, {
    field: "roots",
  });
}

function viewToken(row: TokenRecord): Token {
  const { name, can, scope, ceiling, roots, createdAt, expiresAt, revokedAt } = row;
  const reach = { can: can ?? [], scope, ceiling: ceiling ?? "read-only", roots };
  return { id: idOf(row), name, ...reach, createdAt, expiresAt, revokedAt };
}

function idOf(row: TokenRecord): string {
  return row.hash.slice(0, 16);
}
