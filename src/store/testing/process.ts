import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Store } from "../port/store.ts";

/** Runs a store in a separate process. */
export class StoreProcess {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;

  constructor(mode: keyof typeof MODES, store: string, database = "") {
    const script = fileURLToPath(import.meta.url);
    this.child = spawn(process.execPath, [script, mode, store, database], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#reader = createInterface(this.child.stdout);
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("the process ended without another word");
    return value;
  }

  async kill(): Promise<void> {
    const exited = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await exited;
  }

  /** Closes the process's input, waits until it has exited, and returns its exit code. */
  async end(): Promise<number | null> {
    const exited = this.child.exitCode === null ? once(this.child, "exit") : [this.child.exitCode];
    this.child.stdin.end();
    const [code] = (await exited) as [number | null];
    return code;
  }
}

const MODES = {
  /** Keeps the store open until the input ends. */
  async hold(store: string, database: string): Promise<void> {
    const held = await open(store, database);
    await held.nodes.register([]);
    say(`${held.epoch} ${held.boot}`);
    await once(process.stdin.resume(), "end");
    await held.close();
  },

  /** Writes messages without end, and prints the position of each one after its commit. */
  async write(store: string, database: string): Promise<void> {
    const held = await open(store, database);
    const { aMessage, anEvent, aSession } = await import("./sample.ts");
    const root = aSession();
    await held.write(root.id, (tx) => tx.sessions.add(root));
    say(`${held.epoch} ${root.id}`);
    const writer = async () => {
      for (;;) {
        const { position } = await held.write(root.id, async (tx) => {
          tx.append(anEvent(root.id));
          return tx.messages.add(aMessage(root.id));
        });
        say(String(position));
      }
    };
    await Promise.all([writer(), writer(), writer(), writer()]);
  },

  /** Writes until the write-ahead log has grown and been emptied, then exits without closing the store. */
  async leave(store: string, database: string): Promise<void> {
    const held = await open(store, database);
    const { aMessage, aSession } = await import("./sample.ts");
    const { statSync } = await import("node:fs");
    const root = aSession();
    await held.write(root.id, (tx) => tx.sessions.add(root));
    const body = "x".repeat(2_000_000);
    let [before, bytes] = [0, 0];
    while (bytes >= before) {
      await held.write(root.id, (tx) => tx.messages.add(aMessage(root.id, { body })));
      before = bytes;
      bytes = statSync(`${database}-wal`).size;
    }
    say("emptied");
  },

  async migrateSqlite(_store: string, database: string): Promise<void> {
    const { DatabaseSync } = await import("node:sqlite");
    const { migrate } = await import("../sqlite/migrate.ts");
    const db = new DatabaseSync(database, { timeout: 20_000 });
    await waitForInput();
    migrate(db, database);
    db.close();
  },

  async migratePostgres(store: string): Promise<void> {
    const { default: pg } = await import("pg");
    const { addressOf, clientOptions } = await import("../postgres/connection.ts");
    const { migrate } = await import("../postgres/migrate.ts");
    const address = addressOf(store);
    const client = new pg.Client(clientOptions(address));
    await client.connect();
    await waitForInput();
    await migrate(client, address);
    await client.end();
  },
};

/** Prints `ready` and waits for the end of its input. A test can thus start several processes together. */
async function waitForInput(): Promise<void> {
  say("ready");
  await once(process.stdin.resume(), "end");
}

async function open(store: string, database: string): Promise<Store> {
  const { openStore } = await import("../open.ts");
  const { silentLog } = await import("../../log.ts");
  const { uuidv7 } = await import("uuidv7");
  return openStore({ config: { store, node: "local" }, paths: { database }, boot: uuidv7(), log: silentLog });
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const [, script, mode, store, database] = process.argv;
if (script === fileURLToPath(import.meta.url) && mode !== undefined && mode in MODES) {
  await MODES[mode as keyof typeof MODES](store ?? "", database ?? "");
}
