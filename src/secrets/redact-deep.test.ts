import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { redact } from "./redact.ts";
import { redactDeep, redactNamed } from "./redact-deep.ts";
import { vendorKeys } from "./testing/sample-secret.ts";

describe("a value", () => {
  it("loses the secrets of all its strings, by their keys too", () => {
    const shown = redactDeep({
      command: ["tool", "--token", "hunter2hunter2", "--verbose"],
      env: [{ name: "API_KEY", value: "hunter2hunter2" }],
      headers: { Authorization: "Bearer hunter2hunter2", "x-api-key": "hunter2hunter2" },
      deep: [{ password: "hunter2 hunter3" }, { secrets: { token: "hunter2hunter2" } }],
      text: "password=hunter2",
      tokens: 12,
      token: null,
    });
    assert.deepEqual(shown, {
      command: ["tool", "--token", "[redacted: token]", "--verbose"],
      env: [{ name: "API_KEY", value: "[redacted: key]" }],
      headers: { Authorization: "Bearer [redacted: credential]", "x-api-key": "[redacted: key]" },
      deep: [{ password: "[redacted: password]" }, { secrets: { token: "[redacted: token]" } }],
      text: "password=[redacted: password]",
      tokens: 12,
      token: null,
    });
    assert.deepEqual(redactDeep(shown), shown);
  });

  it("is the same value where it holds no secret", () => {
    const plain = { text: "nothing here", list: [1, "two", { password: "string", key: "abc123def" }] };
    assert.equal(redactDeep(plain), plain);
  });

  it("keeps the kind that a secret shows by its own shape", () => {
    const [kind, key] = vendorKeys(2).find(([each]) => each === "github token")!;
    assert.equal(redactNamed("GITHUB_TOKEN", key), `[redacted: ${kind}]`);
  });
});

it("a rule about a secret is none: its name begins with no", () => {
  for (const name of ["no-password", "no-api-token", "NO_SECRET", "noPassword", "no-no-password"]) {
    assert.equal(redactNamed(name, "never print it"), "never print it");
    assert.equal(redact(`${name}: rotate2daily`), `${name}: rotate2daily`);
  }
});

const SECRET = "Xk9vQ2mZ7pLw4RtB";

describe("a secret in a value", () => {
  const hidden = (value: unknown, shown: unknown): void => {
    assert.deepEqual(redactDeep(value), shown);
    assert.deepEqual(redactDeep(shown), shown, "twice is as once");
  };

  it("is hidden where it is a key, and two of them stay two", () => {
    const [first, second] = [vendorKey(1), vendorKey(2)];
    hidden(
      { [first]: 1, [second]: 2, [`use ${first}`]: { a: 1 } },
      {
        "[redacted: github token]": 1,
        "[redacted: github token] (2)": 2,
        "use [redacted: github token]": { a: 1 },
      },
    );
  });

  it("is hidden where it is a number", () => {
    hidden({ password: 918_273_645, n: 918_273_645 }, { password: "[redacted: password]", n: 918_273_645 });
    hidden(
      { tokens: 918_273_645, token: 12_345, password: 8 },
      { tokens: 918_273_645, token: 12_345, password: 8 },
    );
  });

  it("is hidden in a list of arguments", () => {
    const mark = "[redacted: password]";
    hidden(["curl", "-u", `bob:${SECRET}`, "https://x"], ["curl", "-u", `bob:${mark}`, "https://x"]);
    hidden(["/usr/bin/mysql", "-u", "root", `-p${SECRET}`], ["/usr/bin/mysql", "-u", "root", `-p${mark}`]);
    hidden(["sshpass", "-p", `${SECRET} and more`, "ssh"], ["sshpass", "-p", mark, "ssh"]);
    hidden(["docker", "login", "-u", "bob", "-p", SECRET], ["docker", "login", "-u", "bob", "-p", mark]);
    hidden(["tool", "--password", SECRET], ["tool", "--password", mark]);
  });

  it("is hidden in a list of names and values", () => {
    hidden([["x-api-key", SECRET]], [["x-api-key", "[redacted: key]"]]);
    hidden([["Authorization", `Bearer ${SECRET}`]], [["Authorization", "Bearer [redacted: credential]"]]);
    hidden(["Host", "h", "X-Api-Key", SECRET], ["Host", "h", "X-Api-Key", "[redacted: key]"]);
    hidden({ password: ["abc", SECRET] }, { password: ["[redacted: password]", "[redacted: password]"] });
  });

  it("is hidden where its name stands above or beside it", () => {
    hidden({ password: { value: SECRET } }, { password: { value: "[redacted: password]" } });
    hidden({ api_key: { value: SECRET, n: 1 } }, { api_key: { value: "[redacted: key]", n: 1 } });
    hidden({ key: "API_KEY", val: SECRET }, { key: "API_KEY", val: "[redacted: key]" });
    hidden({ variable: "API_KEY", value: SECRET }, { variable: "API_KEY", value: "[redacted: key]" });
  });
});

it("a value that only looks like one with a secret is the same value", () => {
  for (const value of [
    ["password", "token", "API_KEY_2"],
    ["docker", "run", "-p", "8080:80"],
    ["mysql", "-u", "root", "-p", "db"],
    ["curl", "-u", "$USER:$PASS", "https://x"],
    { "src/network_test_environment.py": 12, "a very long key of several words": true },
    { type: "token", value: "identifier" },
    { total_tokens: 123_456, passwordLength: 12_000, pass: 1_200 },
    JSON.parse('{"__proto__":{"a":"b"}}') as unknown,
  ])
    assert.equal(redactDeep(value), value);
});

function vendorKey(seed: number): string {
  return vendorKeys(seed).find(([kind]) => kind === "github token")?.[1] as string;
}

it("what nests deeper than anyone reads is left out, however deep it is", () => {
  let value: unknown = "end";
  for (let level = 0; level < 100_000; level += 1) value = level % 2 === 0 ? [value] : { value };
  const kept = JSON.stringify(redactDeep(value));
  assert.match(kept, /\[nested too deep to be kept\]/);
  assert.ok(kept.length < 4_000);
});
