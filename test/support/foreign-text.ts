import {
  harmless,
  clip,
  columnsOf as terminalColumnsOf,
  cleanLine as cliLine,
} from "../../src/cli/terminal/text.ts";
import { paintFor } from "../../src/cli/terminal/paint.ts";
import { entryLines } from "../../src/cli/show/transcript.ts";
import { SseReader } from "../../src/client/sse.ts";
import { deliveryIdsIn, withMessageLine, withPromptContext } from "../../src/domain/callback.ts";
import { asData as inheritedData, field, headOf, inline, tailOf } from "../../src/domain/inherited-text.ts";
import { excerpt, redact } from "../../src/secrets/redact.ts";
import { redactDeep } from "../../src/secrets/redact-deep.ts";
import { LiveRedactor } from "../../src/secrets/redact-live.ts";
import { findTerms } from "../../src/search/find.ts";
import { parseQuery } from "../../src/search/query.ts";
import { snippetOf } from "../../src/search/snippet.ts";
import { templateProblem } from "../../src/domain/template.ts";
import { transcriptText } from "../../src/domain/testing/transcript-text.ts";
import { wordsOf } from "../../src/search/words.ts";
import { describeError } from "../../src/drivers/acp/failure.ts";
import { limitedUntil } from "../../src/drivers/acp/limit.ts";
import { countLines } from "../../src/drivers/acp/update/line-count.ts";
import { answersTo } from "../../src/engine/request/form-answer.ts";
import { readTaskNotices } from "../../src/history/readers/claude-code/task-notice.ts";
import { commandText, outputText, readUserRow } from "../../src/history/readers/claude-code/user-row.ts";
import { columnsOf, indexedColumns, isWithoutRowid, rowidColumn } from "../../src/history/sqlite/schema.ts";
import { bounded, cut, promptKey } from "../../src/history/lines/text.ts";
import { parseInput } from "../../src/server/input.ts";
import { OPERATIONS } from "../../src/contract/index.ts";
import { readArguments } from "../../src/server/mcp/arguments.ts";
import {
  asData,
  escapeAt,
  fence,
  oneLine,
  shortLine as historyLine,
  visible,
  withoutDeliveryLines,
  withoutOurLines,
  withoutTerminalSequences,
  withoutTriggerLines,
} from "../../src/text/fence.ts";
import type { Entry } from "../../src/contract/index.ts";
import { LineReader } from "../../src/text/line-reader.ts";

/** Every regular expression and scanner that reads text from an agent, a project, a page or a file. */
export const SCANNERS: Readonly<Record<string, (text: string) => unknown>> = {
  visible,
  withoutTerminalSequences,
  "oneLine, short": (text) => oneLine(text),
  "oneLine, long": (text) => oneLine(text, text.length),
  "fence, short": (text) => fence(text, "n1"),
  "fence, whole": (text) => fence(text, "n1", text.length * 4),
  asData,
  escapeAt,
  withoutTriggerLines,
  withoutDeliveryLines,
  withoutOurLines,
  inheritedData: (text) => inheritedData(text),
  "inheritedData, its end": (text) => inheritedData(text, 3_000),
  "inherited field": (text) => field(text, text.length),
  inline,
  tailOf: (text) => tailOf({ label: "l", body: text, form: "prose" }, 3_000, "n1"),
  headOf: (text) => headOf(text, 3_000, (head) => inheritedData(head)),
  deliveryIdsIn,
  withMessageLine: (text) => withMessageLine(text, "n1"),
  withPromptContext: (text) => withPromptContext(text, "opening"),
  redact,
  redactDeep: (text) => redactDeep({ key: text, value: [text, { [text.slice(0, 2_000)]: text }] }),
  "redact of live text": (text) => {
    const live = new LiveRedactor();
    return [...inPieces(text, 400)].map((piece) => live.push(piece)).join("") + live.flush();
  },
  excerpt: (text) => excerpt(text, text.length),
  "transcript as text": (text) => transcriptText([entryOf(text)], "text", ABOUT),
  "transcript as Markdown": (text) => transcriptText([entryOf(text)], "markdown", ABOUT),
  parseQuery: (text) => attempt(() => parseQuery(text, 0)),
  wordsOf,
  findTerms: (text) => findTerms(text, TERMS),
  snippetOf: (text) => snippetOf(text, TERMS),
  templateProblem: (text) => templateProblem(text.slice(0, 20_000)),
  describeError: (text) => describeError(new Error(text)),
  limitedUntil: (text) => limitedUntil(text, 0),
  countLines: (text) => countLines(text, `${text}x`.replaceAll("a", "b")),
  "answer to a form": (text) =>
    answersTo(
      [
        { id: "a", type: "text" },
        { id: "b", type: "text" },
      ] as never,
      { response: text, answers: null } as never,
    ),
  readTaskNotices: (text) => readTaskNotices(`<task-notification>${text}</task-notification>`, false),
  readUserRow: (text) => readUserRow({ type: "user", message: { role: "user", content: text } }),
  commandText,
  outputText,
  "columns of a table": (text) => columnsOf(`create table t (${text}`),
  "columns of an index": (text) => indexedColumns(`create index t (${text}`),
  rowidColumn: (text) => rowidColumn(`create table t (${text}`),
  isWithoutRowid: (text) => isWithoutRowid(`create table t (a)${text}`),
  "history cut": (text) => cut(text, 1_000),
  "history bounded": (text) => bounded({ text: [text] }, 1_000),
  "history oneLine": (text) => historyLine(text, text.length),
  promptKey,
  parseInput: (text) => attempt(() => parseInput(OPERATIONS.spawn.input, { [text]: text, prompt: 1 })),
  readArguments: (text) =>
    attempt(() => readArguments("ask", { question: text, options: text, [text]: text })),
  SseReader: (text) => {
    const reader = new SseReader();
    return [...inPieces(text, 400)].map((piece) => reader.push(piece));
  },
  LineReader: (text) => {
    const reader = new LineReader();
    return [...inPieces(text, 400)].map((piece) => reader.push(Buffer.from(piece)));
  },
  "a person's terminal": harmless,
  "a line of a person's terminal": cliLine,
  "columns of a terminal": terminalColumnsOf,
  clip: (text) => clip(harmless(text), 80),
  entryLines: (text) =>
    entryLines([entryOf(text), { ...entryOf(text), kind: "toolCall" }], {
      columns: 80,
      paint: paintFor({ isTTY: false }, {}),
    }),
};

const TERMS = [
  { words: ["a"], isPrefix: true },
  { words: ["a", "a", "b"], isPrefix: false },
  { words: ["é"], isPrefix: true },
];

const ABOUT = { title: "t", agent: "sim", keptFrom: 0 };

function entryOf(text: string): Entry {
  return {
    id: "1",
    sessionId: "s",
    index: 0,
    turnId: null,
    author: "agent",
    kind: "text",
    body: { text },
    at: 0,
    isSubagent: false,
  } as unknown as Entry;
}

function attempt(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

function* inPieces(text: string, count: number): Generator<string> {
  const length = Math.ceil(text.length / count);
  for (let at = 0; at < text.length; at += length) yield text.slice(at, at + length);
}

/** A test repeats each piece to find slow expressions: openers without an end, separators, blanks. */
export const ATOMS: readonly string[] = [
  "a",
  "A",
  "0",
  " ",
  "\t",
  "\n",
  "\r",
  "\r\n",
  "a ",
  "a\n",
  "a,",
  "é",
  "漢",
  "é漢",
  "🙂",
  "\u200d",
  "e\u0301\u0301",
  "\u001b",
  "\u001b]",
  "\u001b[",
  "\u001b[1;",
  "\u001b/",
  "\u001bP",
  "\u001b\\",
  "\u009b",
  "\u009d",
  "\u0090",
  "\u0098\u009e",
  "\u009c",
  "\u0007",
  "\u202e",
  "\u200b",
  "\u{e0041}",
  "\ufe0f",
  "\ud800",
  "<",
  "< ",
  "</",
  "</ ",
  "<!--",
  "<!-- ",
  "<!-- trigger",
  "<!-- trigger ",
  "<!-- trigger:1 -->\n",
  "<child-output",
  "<task-notification>",
  "</task-notification>",
  "<result>",
  "<command-name>",
  "<bash-stdout>",
  "@",
  "\\",
  "\\@",
  "\\\\",
  "`",
  "```",
  "~~~\n",
  "#",
  "# ",
  "=",
  "==\n",
  "-",
  "--",
  "- ",
  "-- \n",
  ">",
  "> ",
  "[",
  "[kinfold]",
  "[kinfold",
  "\n[",
  "[redacted: ",
  "[redacted: a]",
  "(",
  ")",
  ") ",
  "{",
  "}",
  "{{",
  "{{#if a}}",
  "{{a}}",
  "}}",
  "'",
  '"',
  "''",
  '""',
  ",",
  ", ",
  ";",
  ":",
  ": ",
  "/",
  "//",
  "/*",
  "*/",
  "://",
  "://a:",
  "a://a:a",
  "%",
  "%40",
  "%3A%2F%2F",
  "%3A",
  "|",
  "&",
  "?",
  "…",
  "..",
  ".a",
  "_",
  "-a",
  "password",
  "password=",
  "password: ",
  "password ",
  "PASSWORD '",
  "token=",
  'secret: "',
  "key",
  "key=",
  "api_key: |\n",
  "Authorization: Bearer ",
  "bearer ",
  "Cookie: a=",
  "a=a; ",
  "set-cookie: ",
  "curl ",
  "curl -u ",
  "mysql ",
  "mysql -p",
  "redis-cli -a ",
  "docker login ",
  "sshpass -p ",
  "machine a login ",
  "login ",
  "identified ",
  "IDENTIFIED BY ",
  "user a identified with ",
  "ENV ",
  "name: ",
  "value: ",
  'name="API_KEY" value',
  "-----BEGIN ",
  "-----BEGIN PRIVATE KEY-----",
  "-----BEGIN PRIVATE KEY-----\n",
  "-----END PRIVATE KEY-----",
  "PRIVATE KEY-----",
  "Private-Lines: 1\n",
  "\nabc-1-",
  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
  "Abc-: ",
  "\\n",
  "sk-",
  "sk-ant-",
  "ghp_",
  "eyJ",
  "eyJaaaaaaaa.",
  "AKIA",
  "SG.",
  "xox",
  "0a",
  "a.",
  "dp.",
  "M",
  "\\u0041",
  "%41",
  "limit ",
  "hit your ",
  "usage limit ",
  "resets ",
  "resets in 1h ",
  "1h ",
  "1.1",
  "resets Jan 1, ",
  "Jan",
  "Europe/",
  "agent:",
  "-a ",
  '"a ',
  "NOT ",
  "a* ",
  "AND ",
  "integer primary key ",
  "create ",
  "without ",
  " where",
];
