import assert from "node:assert/strict";
import { it } from "node:test";
import { checkpoints } from "./tables/checkpoint.ts";
import { drafts } from "./tables/draft.ts";
import { entries } from "./tables/entry.ts";
import { events } from "./tables/event.ts";
import { leases } from "./tables/lease.ts";
import { messages } from "./tables/message.ts";
import { sessions } from "./tables/session.ts";
import type { Kind } from "./column.ts";
import { tokens } from "./tables/token.ts";
import { triggers } from "./tables/trigger.ts";
import { turns } from "./tables/turn.ts";

const TABLES = [checkpoints, drafts, entries, events, leases, messages, sessions, tokens, triggers, turns];

/** Names of columns that hold ids, numbers, times, paths, or words from a fixed set. */
const OURS =
  /^(?:id|idx|hash|key|key_caller|key_hash|callback_key|.*_(?:id|at|from|to|count|ms|time|index|until)|seq|xid|at|fence|pid|boot|node|round|position|attempt|attempts_begun|(?:reported|served)_attempt|blocked|depth|reserved_(?:tokens|usd)|kind|type|status|author|carrier|delivery|sender_kind|origin|source|scope|outcome|held|end_reason|on_parent_end|agent|profile|model|cwd|ceiling)$/;

/**
 * `draft.ts` redacts these columns itself, and only if a draft does not arrive already redacted. The
 * conformance suite tests this.
 */
const CLEANED_BEFORE = ["drafts.text", "drafts.ending"];

function columnsOf(...kinds: readonly Kind[]): string[] {
  const named = TABLES.flatMap(({ name, declared }) =>
    declared.map(({ column, kind }) => ({ name, column, kind })),
  );
  return named.filter(({ kind }) => kinds.includes(kind)).map(({ name, column }) => `${name}.${column}`);
}

it("a column that is written unchanged holds no text of a user or an agent", () => {
  const others = columnsOf("plain").filter((each) => !OURS.test(each.slice(each.indexOf(".") + 1)));
  assert.deepEqual(
    others,
    CLEANED_BEFORE,
    "give these the kind `text` or `json`, or add them here with the reason",
  );
});

it("only what an agent has yet to receive is held", () => {
  assert.deepEqual(columnsOf("held", "heldJson").toSorted(), [
    "messages.body",
    "messages.data",
    "messages.metadata",
    "sessions.spawn_config",
    "triggers.answer",
  ]);
});
