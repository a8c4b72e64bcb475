import type { InputOf } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { mergeReceipts, receiptLine } from "../../domain/receipt.ts";
import { reportOfTurns } from "../../kernel/callback.ts";
import type { InheritedData } from "../../kernel/inherit.ts";
import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import { resolve } from "../access/resolve.ts";
import { transcriptOf } from "./transcript.ts";
import { viewOne } from "./view.ts";
import { REPORT_CHARS_MAX } from "../../domain/session.ts";
import { firstBytes } from "../../text/fence.ts";

/** The most bytes in one reply. The cursor gives the rest. */
const PART_BYTES = 20_000;

/** Returns one view of a session: what it said, what it did, or what Kinfold observed. */
export const inspect: Handler<"inspect"> = async (deps, caller, { input }) => {
  const session = await resolve(deps, caller, input.id);
  const whole = await textOf(deps, session, input);
  const from = input.cursor === undefined ? 0 : offsetOf(input.cursor);
  const text = firstBytes(whole.slice(from), PART_BYTES);
  const end = from + text.length;
  return {
    session: await viewOne(deps, session),
    view: input.view,
    text,
    cursor: end < whole.length ? `c${end}` : null,
  };
};

async function textOf(
  deps: OperationDeps,
  session: SessionRecord,
  input: InputOf<"inspect">,
): Promise<string> {
  const { read } = deps.store;
  switch (input.view) {
    case "transcript":
      return transcriptOf(deps, session, {
        format: "text",
        turn: input.turn === undefined ? null : await requireTurn(deps, session, input.turn),
      });
    case "receipt": {
      const turns = await read.turns.ofRound(session.id, session.round);
      const receipt = mergeReceipts(turns.flatMap((turn) => (turn.receipt === null ? [] : [turn.receipt])));
      return `Seen by Kinfold: ${receiptLine(receipt)}.\n${JSON.stringify(receipt, null, 1)}`;
    }
    case "result": {
      const turns =
        input.turn === undefined
          ? await read.turns.ofRound(session.id, session.round)
          : [await requireTurn(deps, session, input.turn)];
      return resultText(deps, session, turns);
    }
    case "inherited":
      return inheritedText(deps, session);
    default:
      throw new Refusal(
        "not_available",
        `The view "${input.view}" is not available in this version. Allowed: result, transcript, receipt, inherited.`,
        { view: input.view },
      );
  }
}

async function resultText(
  deps: OperationDeps,
  session: SessionRecord,
  turns: readonly TurnRecord[],
): Promise<string> {
  const { report, lastWords } = await reportOfTurns(deps.store.read, turns);
  if (report === null) return "It has said nothing yet.";
  const whole = await wholeMessage(deps, session, { turns, text: report });
  return lastWords === null ? whole : `${whole}\n\nIts last words after this report:\n${lastWords}`;
}

/** Returns the entry's text if the message is long: the turn's row has only the beginning. */
async function wholeMessage(
  deps: OperationDeps,
  session: SessionRecord,
  { turns, text }: { turns: readonly TurnRecord[]; text: string },
): Promise<string> {
  if (text.length < REPORT_CHARS_MAX) return text;
  const turn = turns.findLast((each) => each.lastAssistantMessage === text);
  const said = await deps.store.read.entries.tail(session.id, {
    kinds: ["text"],
    after: (turn?.entryFrom ?? 0) - 1,
    before: turn?.entryTo ?? Number.MAX_SAFE_INTEGER,
    bytesMax: 1,
    entryBytesMax: 1,
    limit: 1,
  });
  const whole = said.findLast(({ author }) => author === "agent")?.body.text ?? "";
  return whole.startsWith(text.slice(0, REPORT_CHARS_MAX)) ? whole : text;
}

const NOT_OURS =
  "It was read from disk: its own transcript shows what it was given; Kinfold gave it nothing.";

/** Returns the context that the session inherited, then the whole checkpoint and all constraints. */
async function inheritedText(deps: OperationDeps, session: SessionRecord): Promise<string> {
  const { read } = deps.store;
  if (session.origin === "imported") return NOT_OURS;
  const [entry] = await read.entries.page(session.id, { after: -1, limit: 1 });
  if (entry?.kind !== "inherited") {
    return session.parentId === null
      ? "A root session inherits nothing."
      : "It was given nothing of its parent's context.";
  }
  const { from, checkpointId, constraints } = entry.body.input as InheritedData;
  const checkpoints = checkpointId === null ? [] : await read.checkpoints.ofSession(from);
  const whole = checkpoints.find((each) => each.id === checkpointId);
  const parts = [
    entry.body.text,
    whole === undefined ? null : `The whole checkpoint:\n${whole.summary}`,
    constraints === null
      ? null
      : `All constraints:\n${constraints.map(({ name, text }) => `- ${name}: ${text}`).join("\n")}`,
  ];
  return parts.filter((part) => part !== null).join("\n\n");
}

async function requireTurn(
  deps: OperationDeps,
  session: SessionRecord,
  id: string,
): Promise<NonNullable<Awaited<ReturnType<OperationDeps["store"]["read"]["turns"]["byId"]>>>> {
  const turn = await deps.store.read.turns.byId(id);
  if (turn !== null && turn.sessionId === session.id) return turn;
  throw new Refusal("not_found", `The session has no turn "${id}". Leave it out for the last round.`);
}

function offsetOf(cursor: string): number {
  const value = Number(/^c(\d{1,12})$/.exec(cursor)?.[1] ?? NaN);
  if (Number.isSafeInteger(value)) return value;
  throw new Refusal(
    "invalid_input",
    `"${cursor}" is not a cursor that get_session gave. Leave it out to begin.`,
  );
}
