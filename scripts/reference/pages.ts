import { SETTINGS } from "../../src/config/index.ts";
import {
  Event,
  type EventType,
  Fragment,
  OPERATIONS,
  type OperationSpec,
  REFUSALS,
  type RefusalCode,
} from "../../src/contract/index.ts";
import { code, page, table } from "./markdown.ts";
import { fieldsOf } from "./schema.ts";

const operations = Object.entries(OPERATIONS) as [string, OperationSpec][];

export function operationsPage(): string {
  const overview = operations.map(([name, { summary, http, mcp, cli }]) => [
    `[${name}](#${name.toLowerCase()})`,
    summary,
    http === undefined ? "" : code(`${http.method} ${http.path}`),
    code(mcp ?? ""),
    code(cli === undefined || cli === "kinfold" ? (cli ?? "") : `kinfold ${cli}`),
  ]);
  return page("Operations", "`src/contract/operations/table.ts`", [
    "Everything a caller may ask. The same table makes the HTTP routes, the MCP tools, the typed client and `/api/openapi.json`.",
    "Fields are camelCase in bodies and records, and snake_case in queries (`timeoutMs` is `?timeout_ms=`). Operations with a `key` " +
      "also take it as the header `Idempotency-Key`. Unknown fields are refused, naming the nearest known one. Any route may also " +
      "answer `unauthorized`, `host_refused`, `invalid_input`, `shutting_down`, `store_busy`, `disk_full` and `internal`.",
    table(["Operation", "What it does", "HTTP", "MCP tool", "CLI"], overview),
    ...operations.flatMap(([name, operation]) => operationBlocks(name, operation)),
  ]);
}

function operationBlocks(name: string, operation: OperationSpec): string[] {
  const input = fieldsOf(operation.input, "input");
  const output = fieldsOf(operation.output, "output");
  const ways = [
    operation.http && code(`${operation.http.method} ${operation.http.path}`),
    operation.mcp && `tool ${code(operation.mcp)}`,
    operation.sessions ? "also with a session's own token" : "not with a session's own token",
  ];
  return [
    `## ${name}`,
    `${operation.summary} ${ways.filter(Boolean).join(" · ")}.`,
    input.length === 0
      ? "Takes nothing."
      : table(
          ["Takes", "Type", "Default", "Meaning"],
          input.map((field) => [
            `${code(field.name)}${field.required ? " *" : ""}`,
            code(field.type),
            code(field.fallback),
            field.description,
          ]),
        ),
    table(
      ["Gives", "Type", "Meaning"],
      output.map((field) => [code(field.name), code(field.type), field.description]),
    ),
    operation.refusals.length === 0
      ? ""
      : `Refuses with ${[...new Set(operation.refusals)].map((refusal) => `[\`${refusal}\`](refusals.md#${refusal})`).join(", ")}.`,
  ];
}

export function refusalsPage(): string {
  const rows = Object.entries(REFUSALS).map(([name, [status, meaning]]) => {
    const from = operations.flatMap(([operation, { refusals }]) =>
      refusals.includes(name as RefusalCode)
        ? [`[${operation}](operations.md#${operation.toLowerCase()})`]
        : [],
    );
    return [`<a id="${name}"></a>${code(name)}`, String(status), meaning, from.join(", ") || "any"];
  });
  return page("Refusals", "`src/contract/refusal.ts`", [
    'Every expected “no”. Over HTTP it is `{ "error": { "code", "message", "details" } }` with the status below; over MCP an ' +
      "error result that begins with the code; the CLI prints the message and exits with 2. A message says what was wrong, what is " +
      "allowed and what to do next. Nothing was changed by a request that was refused.",
    table(["Code", "Status", "Meaning", "From"], rows),
  ]);
}

export function configPage(): string {
  const right = { free: "yes", narrow: "only stricter", none: "" };
  const rows = SETTINGS.map(({ key, env, kind, choices, fallback, project, description }) => [
    code(key),
    choices === null ? (kind === "other" ? "YAML" : kind) : choices.map(code).join(", "),
    fallback === null ? "" : code(JSON.stringify(fallback)),
    code(env),
    right[project],
    description,
  ]);
  return page("Configuration", "`src/contract/config.ts`", [
    "Later wins: the default, `kinfold.yaml` in the home (`KINFOLD_HOME`, else `~/.kinfold`), `kinfold.yaml` in the folder a command " +
      "is given in, the environment, flags. `kinfold config` prints every setting, its value and where it comes from.",
    "A project's file comes with a clone, from whoever wrote it. It may only set what the column *Project* allows; anything else in it " +
      "is not applied, and said. A file with an unknown key, a wrong type or bad YAML is an error that names file and line.",
    "In the environment lists are separated by commas, and whatever is neither a word, a number nor a list is written as YAML: " +
      "`KINFOLD_AGENTS='{ mine: { command: [my-agent, --acp] } }'`.",
    table(["Setting", "Kind", "Default", "Environment", "Project", "Meaning"], rows),
    "## An agent of your own",
    "```yaml\nagents:\n  mine:\n    title: My agent\n    command: [my-agent, --acp]      # an ACP agent over stdio; never run in a shell\n" +
      "    env: [MY_AGENT_KEY]             # variables it may see beside the usual ones\n```",
  ]);
}

/** The meaning of each event. A new type without a line here does not compile. */
const EVENTS: Record<EventType, string> = {
  "session.created": "A root session was started.",
  "session.spawned": "A parent spawned a child.",
  "session.updated": "Something a reader of the session sees has changed.",
  "session.ended": "The session ended: cancelled, acked, removed or gone.",
  "session.detached": "A child goes on without its parent.",
  "session.reopened": "A person opened an ended session again: it takes messages.",
  "session.imported":
    "Entries `from` to `to` were read from the agent's own files; they are told together, not one by one.",
  "round.opened": "A message was admitted to a session that had no round open.",
  "round.closed":
    "The round ended, with its outcome; the callback stands in the parent's inbox since the same transaction.",
  "turn.started": "A runner has taken messages into a turn.",
  "turn.settled": "The turn's outcome, receipt and usage are recorded.",
  "message.admitted": "A message stands in a session's inbox.",
  "message.taken": "A message was taken into a turn, before its first byte was sent.",
  "message.landed": "There is evidence that the agent has it.",
  "message.returned": "There is no evidence that it arrived: it is back in its old place.",
  "message.void": "It will not be delivered; the reason is in the data.",
  "entry.opened":
    "A message is being written: the session's last entry, marked `open`, until it is appended.",
  "entry.appended": "Entries were added to the transcript; they are referred to, not copied.",
  "trigger.opened": "Something went up from a session.",
  "trigger.closed": "A trigger was answered, defaulted or withdrawn.",
  "agent.started": "An agent's process was started.",
  "agent.exited": "An agent's process has ended.",
  notice: "Something a person should know: a template that could not be used, a sleep, a recovery.",
};

export function eventsPage(): string {
  const fields = (schema: typeof Event | typeof Fragment): string =>
    table(
      ["Field", "Type", "Meaning"],
      fieldsOf(schema, "output").map((field) => [code(field.name), code(field.type), field.description]),
    );
  return page("Events", "`src/contract/event.ts`", [
    "`GET /api/events?after=&tree=&session=` is the feed: numbered events from a cursor onward, then live, as server-sent events. " +
      "`Last-Event-ID` resumes where a connection broke off, without a gap and without repeating. A cursor of another epoch, or one " +
      "too old, is answered with [`feed_reset`](refusals.md#feed_reset): take a snapshot and start anew.",
    "Events are written in the transaction they describe and numbered per tree: `(rootId, seq)` is an event's identity. A snapshot at n " +
      "plus the events after n gives the same view as the tables.",
    fields(Event),
    table(
      ["Type", "What happened"],
      Object.entries(EVENTS).map(([type, meaning]) => [code(type), meaning]),
    ),
    "## Fragments",
    "Text on its way to becoming an entry. Fragments have no number and are never stored; the entry that follows holds the whole.",
    fields(Fragment),
  ]);
}
