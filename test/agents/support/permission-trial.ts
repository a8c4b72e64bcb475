import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Permission } from "../../../src/contract/index.ts";
import type { AgentHandle, Driver } from "../../../src/drivers/port.ts";
import { createDrivers } from "../../../src/drivers/registry.ts";
import { silentLog } from "../../../src/log.ts";
import { startModel } from "../model/server.ts";
import type { Model } from "../model/server.ts";
import type { ProgramName } from "./cache.ts";
import { AGENT_MS } from "./stage.ts";
import { surround } from "./surroundings.ts";
import { TOOLS } from "./tools.ts";

export const SECRET = "what-only-the-person-may-read";
export const DEEDS = ["edit inside", "command inside", "edit outside", "command outside"] as const;
export type Deed = (typeof DEEDS)[number];

/** One agent with separate folders: a project, another folder, and Kinfold's home with a secret in it. */
export class PermissionTrial {
  readonly #agent: ProgramName;
  readonly #folders: Record<"home" | "work" | "other", string>;
  #model: Model | null = null;
  #driver: Driver | null = null;
  #run = 0;

  constructor(agent: ProgramName) {
    this.#agent = agent;
    // Not in /tmp, because vendors let an agent write there.
    const make = (name: string): string => mkdtempSync(path.join("/var/tmp", `kinfold-${name}-`));
    this.#folders = { home: make("home"), work: make("work"), other: make("other") };
  }

  async run(mode: Permission, answer: "allow" | "deny"): Promise<{ done: Set<Deed>; told: string }> {
    const model = (this.#model ??= await startModel());
    const driver = (this.#driver ??= this.#makeDriver(model.url));
    this.#run += 1;
    const { files, calls } = this.#deeds(`${this.#run}`);
    const from = model.asked.length;
    model.play(
      Object.entries(calls).map(([name, call]) => ({
        name,
        on: new RegExp(`PLEASE ${name} ${this.#run}\\b`),
        steps: [{ call }, { say: "that is all" }],
      })),
    );
    const handle = await this.#open(driver, mode, answer);
    for (const name of Object.keys(calls)) await handle.prompt(`PLEASE ${name} ${this.#run} now`);
    await handle.stop(2_000);
    const done = new Set(DEEDS.filter((deed) => existsSync(files[deed])));
    return { done, told: JSON.stringify(model.asked.slice(from).map((one) => one.messages)) };
  }

  async close(): Promise<void> {
    await this.#model?.close();
    for (const folder of Object.values(this.#folders)) rmSync(folder, { recursive: true, force: true });
  }

  #deeds(tag: string) {
    const { work, other, home } = this.#folders;
    const project = path.join(work, "project");
    const { shell, write, read } = TOOLS[this.#agent];
    const files: Record<Deed, string> = {
      "edit inside": path.join(project, `edit-${tag}.txt`),
      "command inside": path.join(project, `command-${tag}.txt`),
      "edit outside": path.join(other, `edit-${tag}.txt`),
      "command outside": path.join(other, `command-${tag}.txt`),
    };
    const secret = path.join(home, "token");
    const calls = {
      "edit inside": write(files["edit inside"], "x"),
      "command inside": shell(`echo x > ${path.basename(files["command inside"])}`),
      "edit outside": write(files["edit outside"], "x"),
      "command outside": shell(`echo x > ${files["command outside"]}`),
      "read of the home": read(secret),
      "command on the home": shell(`cat ${secret}`),
    };
    return { files, calls };
  }

  #makeDriver(modelUrl: string): Driver {
    const { work, home } = this.#folders;
    mkdirSync(path.join(work, "project"));
    writeFileSync(path.join(home, "token"), `${SECRET}\n`, { mode: 0o600 });
    Object.assign(process.env, surround({ work, home }, [this.#agent], modelUrl), { HOME: work });
    const simDir = path.join(home, "sim");
    const options = { config: { agents: {} }, simDir, home, sandbox: "auto", log: silentLog } as const;
    return createDrivers(options).get(this.#agent) as Driver;
  }

  async #open(driver: Driver, mode: Permission, answer: "allow" | "deny"): Promise<AgentHandle> {
    const opened = await driver.open({
      sessionId: "permission",
      leaseId: `permission-${process.pid}-${this.#agent}-${this.#run}`,
      cwd: path.join(this.#folders.work, "project"),
      model: null,
      permission: mode,
      tools: null,
      notTools: [],
      servers: null,
      mcp: null,
      load: null,
      startMs: AGENT_MS,
      onUpdate: () => undefined,
      onRequest: async () => ({ kind: answer }),
      admitProcess: async (start) => start() !== null,
    });
    assert.ok(opened.ok, opened.ok ? "" : opened.message);
    return opened.handle;
  }
}
