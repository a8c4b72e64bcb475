import { resolve } from "node:path";
import type { Budget, Permission, SpawnInput, SpawnOutput } from "../contract/index.ts";
import type { Call, Flags } from "./call.ts";
import type { Client } from "./daemon/connection.ts";
import { Failure } from "./failure.ts";
import { findSession, labelOf } from "./sessions.ts";
import { queuedWords } from "./show/words.ts";
import { cleanLine, usd } from "./terminal/text.ts";
import { count, duration, tokens } from "../text/quantity.ts";

/** Starts a root, or a child of `--parent`, from the flags of `spawn` and `run`. */
export async function spawnAsAsked(client: Client, call: Call, prompt: string): Promise<SpawnOutput> {
  const { flags } = call;
  const cwd = flags.text("cwd");
  const start = given({
    prompt,
    name: flags.text("name"),
    agent: flags.text("agent"),
    model: flags.text("model"),
    profile: flags.text("profile"),
    limits: limitsOf(flags),
    permission: flags.text("permission") as Permission | undefined,
    inherit: flags.text("inherit") as SpawnInput["inherit"],
    key: flags.text("key"),
    callback: flags.off("callback") ? false : undefined,
  });
  const parent = flags.text("parent");
  if (parent === undefined) {
    const scope = given({ scope: flags.text("scope") });
    return await client.create({ ...start, ...scope, cwd: resolve(cwd ?? "."), source: "cli" });
  }
  if (flags.text("scope") !== undefined) {
    throw new Failure("refused", "A child always has its parent's scope; leave --scope out.");
  }
  const { id } = await findSession(client, parent);
  return await client.spawn({ ...start, id, ...(cwd === undefined ? {} : { cwd: resolve(cwd) }) });
}

/** Example: `release  3d91ab55  claude opus, /src/shop, permission workspace`. */
export function spawnLine(spawned: SpawnOutput): string {
  const { session, effective } = spawned;
  const agent = cleanLine([effective.agent, effective.model].filter(Boolean).join(" "));
  const facts = [agent, cleanLine(effective.cwd), permissionWords(effective), ...loweredWords(effective)];
  if (effective.profile !== "default") facts.push(`profile ${cleanLine(effective.profile)}`);
  const limits = limitWords(effective.limits);
  if (limits !== "") facts.push(`limit ${limits}`);
  if (session.parentId !== null)
    facts.push(`${spawned.childrenOpen} of ${spawned.childrenMax} children at work`);
  if (spawned.existing) facts.push("not started again: this session already has this name or key");
  else if (spawned.status === "queued")
    facts.push(`${queuedWords(spawned.queuedBehind)}; it starts by itself`);
  return `${labelOf(session)}  ${session.name === null ? "" : `${session.shortId}  `}${facts.join(", ")}`;
}

/** Formats the permission and, if a file lowered it, where: `permission read-only (/src/a.yaml:1)`. */
export function permissionWords({ permission, loweredBy }: SpawnOutput["effective"]): string {
  const where = loweredBy?.["permission"];
  return `permission ${permission}${where === undefined ? "" : ` (${cleanLine(where)})`}`;
}

/** Lists the limits that the project lowers: `depthMax 1 (/src/shop/kinfold.yaml:3)`. */
export function loweredWords({ counts, loweredBy }: SpawnOutput["effective"]): string[] {
  return Object.entries(counts ?? {}).map(([key, value]) => {
    const where = loweredBy?.[`limits.${key}`];
    return `${cleanLine(key)} ${value}${where === undefined ? "" : ` (${cleanLine(where)})`}`;
  });
}

/** Example: `$10, 30 min`. */
export function limitWords(limits: Budget): string {
  const words: string[] = [];
  if (limits.usd !== undefined) words.push(usd(limits.usd));
  if (limits.tokens !== undefined) words.push(`${tokens(limits.tokens)} tokens`);
  if (limits.turns !== undefined) words.push(count(limits.turns, "turn"));
  if (limits.minutes !== undefined) words.push(duration(limits.minutes * 60_000));
  return words.join(", ");
}

function limitsOf(flags: Flags): Budget | undefined {
  const limits = given({
    usd: flags.number("usd"),
    tokens: flags.number("tokens"),
    turns: flags.number("turns"),
    minutes: flags.number("minutes"),
  });
  return Object.keys(limits).length === 0 ? undefined : (limits as Budget);
}

/** Removes undefined fields: a field of the contract may be absent, but not undefined. */
function given<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
