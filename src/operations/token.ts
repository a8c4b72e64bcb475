import type { Caller, InputOf, OutputOf, Token } from "../contract/index.ts";
import { Refusal } from "../contract/refusal.ts";
import { hashOf, newSecret } from "../kernel/id.ts";
import type { TokenRecord } from "../store/port.ts";
import type { OperationDeps } from "./deps.ts";

export async function createToken(
  deps: OperationDeps,
  _caller: Caller,
  input: InputOf<"createToken">,
): Promise<OutputOf<"createToken">> {
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
    createdAt: now,
    expiresAt: input.expiresInMs === null ? null : now + input.expiresInMs,
    revokedAt: null,
  };
  await deps.store.addToken(row);
  return { token: viewToken(row), secret };
}

export async function listTokens(deps: OperationDeps): Promise<OutputOf<"listTokens">> {
  const rows = await deps.store.read.tokens.outside();
  return { tokens: rows.map(viewToken) };
}

export async function revokeToken(
  deps: OperationDeps,
  _caller: Caller,
  input: InputOf<"revokeToken">,
): Promise<OutputOf<"revokeToken">> {
  const rows = await deps.store.read.tokens.outside();
  const found = rows.filter((each) => idOf(each) === input.id || each.name === input.id);
  // A name may have been used before: the key that is still valid is meant.
  const row = found.find((each) => each.revokedAt === null) ?? found[0];
  if (row === undefined) {
    const names = rows.map((each) => each.name).join(", ") || "none";
    throw new Refusal("not_found", `No API key "${input.id}". There are: ${names}.`);
  }
  const now = deps.now();
  await deps.store.revokeToken(row.hash, now);
  return { token: viewToken({ ...row, revokedAt: row.revokedAt ?? now }) };
}

function viewToken(row: TokenRecord): Token {
  const { name, can, scope, createdAt, expiresAt, revokedAt } = row;
  return { id: idOf(row), name, can: can ?? [], scope, createdAt, expiresAt, revokedAt };
}

function idOf(row: TokenRecord): string {
  return row.hash.slice(0, 16);
}
