import assert from "node:assert/strict";
import { test } from "node:test";
import { reportOf, type TurnSaid } from "./session.ts";

const asked = (lastMessage: string | null): TurnSaid => ({ lastMessage, isAboutCallbacks: false });
const called = (lastMessage: string | null): TurnSaid => ({ lastMessage, isAboutCallbacks: true });
const REPORT = "The login works: three tests added, all green.";
const LONGER = `${REPORT} The child found one more case, which is fixed too.`;

for (const [what, turns, report, lastWords] of [
  ["a round without a word has no report", [asked(null), asked("  ")], null, null],
  ["a round's only message is its report", [asked(REPORT)], REPORT, null],
  [
    "a short answer to a callback does not replace the report",
    [asked(REPORT), called("noted")],
    REPORT,
    "noted",
  ],
  ["nor do several", [asked(REPORT), called("noted"), called("fine")], REPORT, "fine"],
  ["a longer answer to a callback is the new report", [asked(REPORT), called(LONGER)], LONGER, null],
  ["an answer to a prompt is the new report, however short", [asked(REPORT), asked("No.")], "No.", null],
  [
    "an answer to a callback is the report where there is none",
    [asked(null), called("noted")],
    "noted",
    null,
  ],
  ["a silent turn changes nothing", [asked(REPORT), called(null)], REPORT, null],
] as const) {
  test(what, () => {
    assert.deepEqual(reportOf(turns), { report, lastWords });
  });
}
