import { cp } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { provesReader } from "../../reader.spec.ts";
import { gemini } from "./index.ts";
import { Recording } from "./testing/session.ts";

const recorded = fileURLToPath(new URL("testing/fixtures", import.meta.url));

provesReader("Gemini CLI", {
  reader: gemini,
  isLines: ({ path }) => path.endsWith(".jsonl"),
  async lay(root) {
    await cp(recorded, root, { recursive: true });
    const parent = new Recording("parent00-1").user("Look").calls({
      id: "c1",
      name: "codebase_investigator",
      agentId: "child000-1",
      args: { objective: "Look at Y" },
      result: [{ functionResponse: { id: "c1", response: { output: "fine" } } }],
    });
    parent.answer("It is fine.").row({ $rewindTo: "parent00-1-3" }).user("Again").answer("Still fine.");
    await parent.write(root);
    const child = new Recording("child000-1", { kind: "subagent", directories: ["/w/app"] });
    child.user("Look at Y").answer("Looking.", { thoughts: [{ subject: "Where", description: "is Y?" }] });
    child.calls({ id: "c2", name: "complete_task", result: [{ functionResponse: { id: "c2" } }] });
    await child.write(root, "tmp/app/chats/parent00-1/child000-1.jsonl");
    const old = new Recording("old00000-1")
      .user("Old\nprompt")
      .answer('Old answer, with "quotes" and {braces].');
    await old.writeWhole(root, { summary: "An old one" });
  },
});
