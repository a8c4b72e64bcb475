import assert from "node:assert/strict";
import { it } from "node:test";
import { readMode, verdict } from "./mode.ts";

const mode = (permission: string, more: object = {}) => readMode({ kinfold: { permission, ...more } });
const write = (path: string) => ({ tool: "Write", cwd: "/work", path }) as const;
const command = { tool: "Bash", cwd: "/work" } as const;

it("sim acts, asks or refuses according to its mode", () => {
  assert.deepEqual(
    ["read-only", "ask", "workspace", "full"].map((each) => [
      verdict(mode(each), write("a.txt")),
      verdict(mode(each), write("../a.txt")),
      verdict(mode(each), command),
    ]),
    [
      ["refuse", "refuse", "refuse"],
      ["ask", "ask", "ask"],
      ["do", "ask", "do"],
      ["do", "do", "do"],
    ],
  );
});

it("sim never uses a tool that it was not given, whatever its mode", () => {
  assert.equal(verdict(mode("full", { tools: ["Bash"] }), write("a")), "refuse");
  assert.equal(verdict(mode("full", { notTools: ["Bash"] }), command), "refuse");
});

it("sim may do everything if the client sends no mode", () => {
  assert.equal(verdict(readMode(undefined), write("/etc/x")), "do");
});
