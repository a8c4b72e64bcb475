import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agentEnvironment, findCommand } from "./environment.ts";

const source = {
  PATH: "/bin",
  HOME: "/people/a",
  LC_ALL: "C",
  XDG_CACHE_HOME: "/c",
  HTTPS_PROXY: "http://proxy",
  AWS_SECRET_ACCESS_KEY: "s",
  OPENAI_API_KEY: "k",
  NODE_OPTIONS: "--inspect",
  KINFOLD_TOKEN: "t",
  KINFOLD_HOME: "/k",
  KINFOLD_LEASE: "someone else's",
};

describe("an agent's environment", () => {
  it("has every variable with a configured prefix, but never ours", () => {
    const names = ["OPENAI_*", "KINFOLD_*", "*"];
    const { OPENAI_API_KEY, KINFOLD_TOKEN, AWS_SECRET_ACCESS_KEY } = agentEnvironment(source, {
      leaseId: "l",
      names,
    });
    assert.deepEqual([OPENAI_API_KEY, KINFOLD_TOKEN, AWS_SECRET_ACCESS_KEY], ["k", undefined, undefined]);
  });

  it("has the usual variables and the configured ones, and nothing else", () => {
    const environment = agentEnvironment(source, { leaseId: "l", names: ["OPENAI_API_KEY"] });
    assert.deepEqual(environment, {
      PATH: "/bin",
      HOME: "/people/a",
      LC_ALL: "C",
      XDG_CACHE_HOME: "/c",
      OPENAI_API_KEY: "k",
      KINFOLD_LEASE: "l",
    });
  });

  it("never has the daemon's own variables, even if the configuration lists them", () => {
    const names = ["KINFOLD_TOKEN", "KINFOLD_HOME"];
    const environment = agentEnvironment(source, { leaseId: "l", names });
    assert.equal(environment["KINFOLD_TOKEN"], undefined);
    assert.equal(environment["KINFOLD_HOME"], undefined);
  });
});

describe("a command", () => {
  it("is found on the path, or by its own path, and only if it can be executed", () => {
    assert.equal(findCommand("sh", "/nowhere:/bin"), "/bin/sh");
    assert.equal(findCommand("/bin/sh", ""), "/bin/sh");
    assert.equal(findCommand("passwd", "/etc"), null);
  });

  it("is never taken from the folder that an agent works in", () => {
    assert.equal(findCommand("./sh", "/bin"), null);
    assert.equal(findCommand("sh", "bin:.:"), null);
  });
});
