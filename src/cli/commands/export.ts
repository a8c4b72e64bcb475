import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Session } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../daemon/connection.ts";
import { placed } from "../show/family.ts";
import { findSession, labelOf } from "../sessions.ts";
import { allEntries } from "./show.ts";
import { bytes, count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const format = call.flags.text("format") ?? (call.io.json ? "json" : "markdown");
  const { client } = await openConnection(call);
  const session = await findSession(client, call.args[0] ?? "");
  const sessions = call.flags.on("tree") ? await wholeTree(client, session) : [session];
  const text =
    format === "json"
      ? await asJson(client, sessions)
      : await asText(client, sessions, format === "text" ? "text" : "markdown");
  const file = call.flags.text("output");
  if (file === undefined) return void call.io.stdout.write(text);
  const path = resolve(file);
  await writeFile(path, text, { mode: 0o600 });
  const size = Buffer.byteLength(text);
  call.io.answer(
    { path, bytes: size, sessions: sessions.length },
    `${call.io.tick} ${count(sessions.length, "session")}, ${bytes(size)} in ${path}`,
  );
}

async function wholeTree(client: Client, session: Session): Promise<Session[]> {
  const { sessions } = await client.tree({ id: session.id });
  return placed(sessions).map((row) => row.session);
}

async function asJson(client: Client, sessions: readonly Session[]): Promise<string> {
  const all = [];
  for (const session of sessions) {
    const { turns } = await client.turns({ id: session.id, limit: 500 });
    all.push({ session, turns, entries: await allEntries(client, session.id) });
  }
  return `${JSON.stringify({ sessions: all }, null, 2)}\n`;
}

async function asText(
  client: Client,
  sessions: readonly Session[],
  format: "text" | "markdown",
): Promise<string> {
  const parts: string[] = [];
  for (const session of sessions) {
    const { text } = await client.transcript({ id: session.id, format });
    parts.push(sessions.length > 1 ? `${heading(session, format)}\n\n${text.trim()}\n` : `${text.trim()}\n`);
  }
  return parts.join(format === "markdown" ? "\n---\n\n" : `\n${"=".repeat(72)}\n\n`);
}

function heading(session: Session, format: "text" | "markdown"): string {
  const words = `${labelOf(session)} (${session.shortId}, ${session.agent}), generation ${session.depth}`;
  return format === "markdown" ? `<!-- ${words.replaceAll("--", "- -")} -->` : words;
}
