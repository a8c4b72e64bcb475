import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Session } from "../../../src/contract/index.ts";
import { eventually, TestHome } from "../../support/daemon.ts";
import type { Client } from "../../support/daemon.ts";
import { startModel } from "../model/server.ts";
import type { Asked, Model } from "../model/server.ts";
import type { Rule } from "../model/script.ts";
import type { ProgramName } from "./cache.ts";
import { surround } from "./surroundings.ts";

/** A daemon with real agents and a scripted model. */
export class Stage {
  readonly home: TestHome;
  readonly model: Model;
  readonly project: string;
  readonly #env: Record<string, string>;

  private constructor(home: TestHome, model: Model, env: Record<string, string>) {
    this.home = home;
    this.model = model;
    this.#env = env;
    this.project = path.join(home.work, "project");
    mkdirSync(this.project);
  }

  static async open(names: readonly ProgramName[], rules: readonly Rule[]): Promise<Stage> {
    const model = await startModel(rules);
    const home = new TestHome({ env: { KINFOLD_START_MS: "120000" } });
    return new Stage(home, model, surround(home, names, model.url));
  }

  /** The environment that an agent has when a person starts it by hand in the same place. */
  get agentEnv(): Record<string, string> {
    return { HOME: this.home.work, ...this.#env };
  }

  start(env: Readonly<Record<string, string>> = {}): Promise<Client> {
    return this.home.start({ env: { ...this.#env, ...env } });
  }

  /** Starts a root session with full permission, so that it asks nothing. */
  async root(client: Client, agent: string, prompt: string): Promise<Session> {
    const { session } = await client.create({
      name: "root",
      agent,
      cwd: this.project,
      permission: "full",
      prompt,
    });
    return session;
  }

  /** Resolves to the first model request that was answered with this step of this rule. */
  asked(rule: string, step = 0): Promise<Asked> {
    return eventually(
      `the model was asked for step ${step} of ${rule}`,
      async () => this.model.asked.find((one) => one.rule === rule && one.step === step) ?? null,
      AGENT_MS,
    );
  }

  /**
   * Resolves when every agent has saved its prompt on disk; `prompts` has one prompt per session name. An
   * agent that is killed earlier forgets its prompt. Kinfold then does not repeat the work and rightly
   * interrupts the session.
   */
  async kept(client: Client, rootId: string, prompts: Readonly<Record<string, string>>): Promise<void> {
    const { sessions } = await client.list({ root: rootId });
    const isKept = (id: string, prompt: string, files: readonly string[]): boolean =>
      files.some((file) => {
        const text = readFileSync(file);
        return (file.includes(id) || text.includes(id)) && text.includes(prompt);
      });
    await eventually("all prompts are on disk", async () => {
      const files = readdirSync(this.home.work, { recursive: true, withFileTypes: true })
        .filter((file) => file.isFile())
        .map((file) => path.join(file.parentPath, file.name));
      return sessions.every(({ name, agentSessionId }) =>
        isKept(agentSessionId ?? "not opened", prompts[name ?? ""] ?? "not named", files),
      );
    });
  }

  /** Returns every command line of this daemon's processes that contains something shaped like our tokens. */
  tokensInCommandLines(): string[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && readOf(name, "environ").includes(this.home.work))
      .map((name) => readCommandLine(name))
      .filter((line) => /kf[a-z]_[\w-]{40,}/.test(line));
  }

  async close(): Promise<void> {
    try {
      await this.home.close();
    } finally {
      await this.model.close();
    }
  }
}

/** Time limit for a real agent on a busy machine; it usually takes two seconds. */
export const AGENT_MS = 120_000;

/** Returns the pids of the processes whose command line contains the text. */
export function processesWith(text: string): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && readCommandLine(name).includes(text));
}

function readCommandLine(pid: string): string {
  return readOf(pid, "cmdline").replaceAll("\0", " ");
}

function readOf(pid: string, name: "cmdline" | "environ"): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    // The process ended while it was being read, or belongs to another user.
    return "";
  }
}

/** Counts how often one request to a model contains a text, over all user messages and tool results. */
export function timesTold(asked: Asked, text: string): number {
  const told = asked.messages.flatMap((message) =>
    message.role === "user" ? [message.text, ...message.results.map((result) => result.text)] : [],
  );
  return told.reduce((count, one) => count + one.split(text).length - 1, 0);
}
