// Run by the runaway agent: spawns over plain HTTP, with a person's token that the agent should not have.
import { appendFileSync, readFileSync } from "node:fs";

const { url, token, rootId } = JSON.parse(readFileSync("stolen.json", "utf8")) as Record<string, string>;
const response = await fetch(`${url}/api/sessions/${rootId}/spawn`, {
  method: "POST",
  headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
  body: JSON.stringify({ prompt: "run away", agent: "runaway" }),
});
const { error } = (await response.json()) as { error?: { code: string } };
appendFileSync("stolen-answers.txt", `${error?.code ?? "spawned"}\n`);
