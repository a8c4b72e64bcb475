import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Session } from "../../contract/index.ts";
import { familyLines, placed } from "./family.ts";
import { gridLines } from "../terminal/grid.ts";
import { paintFor } from "../terminal/paint.ts";
import { session } from "../../contract/testing/session.ts";
import { columnsOf } from "../terminal/text.ts";

const paint = paintFor({ isTTY: false }, {});
const id = (n: number) => `01900000-0000-7000-8000-00000000000${n}`;

const FAMILY: Session[] = [
  session({
    id: id(1),
    name: "release",
    agent: "claude",
    status: "waiting",
    waiting: { on: "children", since: 0 },
    usage: { inputTokens: 600_000, cachedTokens: 0, outputTokens: 20_000, usd: 2.1 },
  }),
  session({
    id: id(2),
    parentId: id(1),
    name: "tests",
    agent: "codex",
    status: "running",
    createdAt: 360_000,
    evidence: { state: "running", reason: "npm test", confidence: "certain", at: 716_000 },
    usage: { inputTokens: 41_000, cachedTokens: 0, outputTokens: 0, usd: null },
  }),
  session({
    id: id(3),
    parentId: id(2),
    name: "flaky",
    agent: "codex",
    status: "idle",
    outcome: "completed",
    lastActivityAt: 700_000,
    createdAt: 400_000,
  }),
  session({
    id: id(4),
    parentId: id(1),
    name: "docs",
    agent: "gemini",
    status: "idle",
    outcome: "failed",
    createdAt: 500_000,
    lastActivityAt: 700_000,
    outcomeReason: "exit 1",
  }),
];

function lines(columns: number, sessions: readonly Session[] = FAMILY): string[] {
  return familyLines(sessions, { columns, paint, now: 720_000 });
}

describe("a family on a terminal", () => {
  it("is a tree with agent, state, age, cost and tokens where there is room", () => {
    assert.deepEqual(lines(100), [
      "release      claude  waiting for 1 child         12 min  $2.10  620k",
      "├─ tests     codex   working: npm test, 4 s ago   6 min      -   41k",
      "│  └─ flaky  codex   done                          20 s      -",
      "└─ docs      gemini  ✕ failed: exit 1              20 s      -",
    ]);
  });
  it("never exceeds the width, whatever the width", () => {
    for (let columns = 30; columns <= 130; columns++) {
      for (const line of lines(columns)) assert.ok(columnsOf(line) <= columns, `${columns}: ${line}`);
    }
  });
  it("drops cost, tokens and agent before it shortens the state", () => {
    const [, tests] = lines(50);
    assert.match(tests ?? "", /working: npm test, 4 s ago/);
    assert.doesNotMatch(tests ?? "", /41k/);
  });
  it("keeps deep trees readable: the name shrinks, the branch stays", () => {
    const deep = Array.from({ length: 9 }, (_, i) =>
      session({ id: id(i + 1), parentId: i === 0 ? null : id(i), name: `a-rather-long-name-${i}` }),
    );
    for (const line of lines(60, deep)) assert.ok(columnsOf(line) <= 60, line);
  });
});

describe("tree order", () => {
  it("puts children below their parent, oldest first, whatever the order given", () => {
    const order = placed(FAMILY.toReversed()).map((row) => row.session.name);
    assert.deepEqual(order, ["release", "tests", "flaky", "docs"]);
  });
  it("shows a session whose parent is not in the list at the top", () => {
    assert.equal(placed([FAMILY[2] as Session])[0]?.branch, "");
  });
});

describe("a table", () => {
  const columns = [
    { title: "NAME" },
    { title: "STATE", flexible: true },
    { title: "AGE" },
    { title: "PARENT", dropped: 1 },
  ];
  const rows = [
    [
      { text: "release" },
      { text: "working: a very long command line that does not fit" },
      { text: "4 s" },
      { text: "somebody" },
    ],
  ];
  it("drops what may be dropped, then narrows what may be narrowed", () => {
    const wide = gridLines(columns, rows, { columns: 120, paint });
    assert.match(wide[0] ?? "", /PARENT/);
    const narrow = gridLines(columns, rows, { columns: 44, paint });
    assert.doesNotMatch(narrow[0] ?? "", /PARENT/);
    for (const line of narrow) assert.ok(columnsOf(line) <= 44, line);
  });
});
