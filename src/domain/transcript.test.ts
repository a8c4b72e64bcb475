import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../contract/index.ts";
import { transcriptText } from "./testing/transcript-text.ts";

test("a transcript as text has every entry under its author, indented", () => {
  assert.equal(
    transcriptText(entries, "text", head),
    `auth tests
codex gpt-5.5

0 · person · 2026-11-15 14:02:00 UTC
  Write tests.

  Then run them.

1 · codex gpt-5.5 · thought · 2026-11-15 14:02:01 UTC
  Hm.
  Well.

2 · codex gpt-5.5 · calls bash · 2026-11-15 14:02:02 UTC
  Run the tests
  $ npm test

3 · codex gpt-5.5 · result of bash, failed, exit 1 · 2026-11-15 14:02:03 UTC
  1 failed
  \`\`\`
  x

4 · codex gpt-5.5 · plan · 2026-11-15 14:02:04 UTC
  [done] read
  [pending] write

5 · kinfold · notice · 2026-11-15 14:02:05 UTC
  The machine slept.

6 · codex gpt-5.5 (sub-agent) · 2026-11-15 14:02:06 UTC
  Done.
`,
  );
});

test("a transcript as Markdown quotes what tools were given and returned", () => {
  assert.equal(
    transcriptText(entries.slice(1, 5), "markdown", head),
    `# auth tests

Agent: codex gpt-5.5

## 1 · codex gpt-5.5 · thought · 2026-11-15 14:02:01 UTC

> Hm.
> Well.

## 2 · codex gpt-5.5 · calls bash · 2026-11-15 14:02:02 UTC

\`\`\`text
Run the tests
$ npm test
\`\`\`

## 3 · codex gpt-5.5 · result of bash, failed, exit 1 · 2026-11-15 14:02:03 UTC

\`\`\`\`text
1 failed
\`\`\`
x
\`\`\`\`

## 4 · codex gpt-5.5 · plan · 2026-11-15 14:02:04 UTC

- [done] read
- [pending] write
`,
  );
});

test("no entry can pass for another one, or write to the reader's terminal", () => {
  const forged = "ok\r0 · person · now\n## 9 · person · now\n\u001b[2Jgone\u0007";
  const entry: Entry = { ...(entries[0] as Entry), author: "agent", body: { text: forged } };
  const text = transcriptText([entry], "text", head);
  assert.deepEqual(
    text.split("\n").filter((line) => /^\d/.test(line)),
    ["0 · codex gpt-5.5 · 2026-11-15 14:02:00 UTC"],
  );
  const markdown = transcriptText([entry], "markdown", head);
  assert.equal(markdown.match(/^## \d/gm)?.length, 1);
  assert.doesNotMatch(text + markdown, /(?![\t\n])\p{Cc}/u);
});

test("a transcript without entries is its heading", () => {
  assert.equal(transcriptText([], "text", head), "auth tests\ncodex gpt-5.5\n");
});

const head = { title: "auth\ntests", agent: "codex gpt-5.5" };

const entries: Entry[] = (
  [
    ["person", "text", { text: "Write tests.\n\nThen run them.\n" }],
    ["agent", "thought", { text: "Hm.\nWell." }],
    ["agent", "toolCall", { text: "Run the tests", tool: "bash", command: "npm test" }],
    ["tool", "toolResult", { text: "1 failed\n```\nx", tool: "bash", ok: false, exitCode: 1 }],
    [
      "agent",
      "plan",
      {
        text: "- read\n- write",
        steps: [
          { title: "read", status: "done" },
          { title: "write", status: "pending" },
        ],
      },
    ],
    ["daemon", "notice", { text: "The machine slept." }],
    ["agent", "text", { text: "Done." }],
  ] as const
).map(([author, kind, body], index) => ({
  sessionId: "01900000-0000-7000-8000-00004f2a91c0",
  index,
  turnId: null,
  author,
  kind,
  body: body as Entry["body"],
  isSubagent: index === 6,
  at: Date.UTC(2026, 10, 15, 14, 2, index),
}));
