import { Permission, type Token, TokenRight } from "../../contract/index.ts";
import { resolve } from "node:path";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../daemon/connection.ts";
import { refused } from "../failure.ts";
import { gridLines } from "../terminal/grid.ts";
import { ago, cleanLine } from "../terminal/text.ts";
import { nearest } from "../../text/nearest.ts";

export async function run(call: Call): Promise<void> {
  const [action = "ls", name] = call.args;
  if (action === "create") return await create(call, required(name, "create ci --can read,spawn"));
  if (action === "revoke") return await revoke(call, required(name, "revoke ci"));
  const { client } = await openConnection(call);
  return await list(client, call);
}

/** Writes only the secret to standard output, so that a script can keep it in a variable. */
async function create(call: Call, name: string): Promise<void> {
  const can = rightsOf(call.flags.text("can") ?? "read");
  const ceiling = ceilingOf(call.flags.text("ceiling") ?? "workspace");
  const named = call.flags.text("root")?.split(",");
  const given = named ?? (can.includes("spawn") ? [process.cwd()] : null);
  const roots = given?.map((each) => resolve(each.trim())) ?? null;
  const { client } = await openConnection(call, { start: true });
  const scope = call.flags.text("scope") ?? null;
  const expiresInMs = call.flags.number("expires") ?? null;
  const made = await client.createToken({ name, can, scope, ceiling, roots, expiresInMs });
  if (call.io.json) return call.io.answer(made);
  call.io.line(made.secret);
  call.io.note(
    `${reach(made.token)}. The key is shown only once. Revoke it: kinfold tokens revoke ${made.token.id}`,
  );
}

async function list(client: Client, call: Call): Promise<void> {
  const { tokens } = await client.listTokens({});
  if (call.io.json) return call.io.answer({ tokens });
  if (tokens.length === 0)
    return call.io.line(
      "No API keys yet. Create one: kinfold tokens create ci --can read,spawn --expires 30d",
    );
  const now = Date.now();
  const titles = ["NAME", "ID", "MAY", "SCOPE", "UP TO", "FOLDERS", "MADE", "STATE"];
  const rows = tokens.map((token) => {
    const state = stateOf(token, now);
    const colour = state.isValid ? null : ("soft" as const);
    return [
      { text: cleanLine(token.name), colour },
      { text: token.id, colour: "soft" as const },
      { text: token.can.join(", "), colour },
      { text: cleanLine(token.scope ?? "all"), colour },
      { text: token.ceiling, colour },
      { text: foldersOf(token), colour },
      { text: ago(now - token.createdAt), colour: "soft" as const },
      { text: state.words, colour },
    ];
  });
  const columns = titles.map((title) => ({ title, ...(title === "MADE" ? { dropped: 1 } : {}) }));
  call.io.lines(gridLines(columns, rows, { columns: call.io.columns(), paint: call.io.paint }));
}

async function revoke(call: Call, name: string): Promise<void> {
  const { client } = await openConnection(call);
  const { token } = await client.revokeToken({ id: await idOf(client, name) });
  call.io.answer({ token }, `${call.io.tick} ${cleanLine(token.name)} is revoked; its open streams end.`);
}

/** Finds an API key by id or name. Prefers a valid key to revoked ones of the same name. */
async function idOf(client: Client, name: string): Promise<string> {
  const { tokens } = await client.listTokens({});
  const found = tokens.filter((token) => token.id === name || token.name === name);
  const valid = found.filter((token) => token.revokedAt === null);
  const [one, ...more] = valid.length > 0 ? valid : found;
  if (one === undefined) {
    const names = [...new Set(tokens.map((token) => cleanLine(token.name)))];
    throw refused("not_found", `There is no API key "${cleanLine(name)}".`, [
      ...nearest(name, names).map((each) => `Did you mean: ${each}`),
      "All of them: kinfold tokens ls",
    ]);
  }
  if (more.length === 0 || valid.length === 0) return one.id;
  const text = `${valid.length} valid keys have the name "${cleanLine(name)}". Choose one by its id:`;
  const made = (token: Token): string => `(made ${ago(Date.now() - token.createdAt)})`;
  const next = valid.map((token) => `kinfold tokens revoke ${token.id}   ${made(token)}`);
  throw refused("ambiguous_reference", text, next);
}

function rightsOf(text: string): TokenRight[] {
  const words = text.split(",").map((word) => word.trim().toLowerCase());
  for (const word of words) {
    if (TokenRight.safeParse(word).success) continue;
    const [close] = nearest(word, TokenRight.options);
    throw refused("wrong_use", `There is no right "${cleanLine(word)}".`, [
      ...(close === undefined ? [] : [`Did you mean: ${close}`]),
      `Allowed: ${TokenRight.options.join(", ")}`,
    ]);
  }
  return [...new Set(words as TokenRight[])];
}

function ceilingOf(word: string): Permission {
  const found = Permission.safeParse(word.trim().toLowerCase());
  if (found.success) return found.data;
  throw refused("wrong_use", `There is no permission "${cleanLine(word)}".`, [
    `Allowed: ${Permission.options.join(", ")}`,
  ]);
}

function reach(token: Token): string {
  const where = token.scope === null ? "in every scope" : `in the scope ${cleanLine(token.scope)}`;
  const until = token.expiresAt === null ? "with no expiry" : `until ${day(token.expiresAt)}`;
  return `${cleanLine(token.name)} may ${token.can.join(", ")} ${where}, up to "${token.ceiling}" in ${foldersOf(token)}, ${until}`;
}

function foldersOf({ roots }: Token): string {
  return roots === null || roots.includes("/")
    ? "any folder"
    : roots.map((each) => cleanLine(each)).join(", ");
}

function stateOf(token: Token, now: number): { words: string; isValid: boolean } {
  if (token.revokedAt !== null) return { words: `revoked ${ago(now - token.revokedAt)}`, isValid: false };
  if (token.expiresAt === null) return { words: "valid", isValid: true };
  if (token.expiresAt <= now) return { words: `expired ${ago(now - token.expiresAt)}`, isValid: false };
  return { words: `valid until ${day(token.expiresAt)}`, isValid: true };
}

function day(at: number): string {
  return new Date(at).toLocaleString("sv").slice(0, 16);
}

function required(name: string | undefined, example: string): string {
  if (name !== undefined) return name;
  throw refused("wrong_use", "The name of the key is missing.", [
    `Example: kinfold tokens ${example}`,
    "All of them: kinfold tokens ls",
  ]);
}
