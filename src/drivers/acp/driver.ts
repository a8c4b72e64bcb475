import type { Agent } from "../../contract/index.ts";
import type { Log } from "../../log.ts";
import { findCommand } from "../process/environment.ts";
import type { Driver } from "../port.ts";
import type { ProcessHost } from "../process/process.ts";
import type { Dialect } from "./dialect.ts";
import { FirstStart } from "./first-start.ts";
import type { Learned } from "./open.ts";

export interface AcpOptions {
  readonly name: string;
  readonly title: string;
  readonly command: readonly string[];
  readonly env: readonly string[];
  readonly extraEnv?: Readonly<Record<string, string>>;
  readonly model?: string | null;
  readonly howToInstall?: string | null;
  /** What is known about this agent before its first start. */
  readonly known?: Partial<Agent>;
  /** Facts found without starting the agent. They override everything else. */
  readonly describe?: () => Promise<Partial<Agent>>;
  readonly dialect?: Dialect;
  readonly host: ProcessHost;
  readonly log: Log;
}

export function createAcpDriver(options: AcpOptions): Driver {
  const learned: Learned = {};
  const { dialect = {} } = options;
  const firstAlone = dialect.startsFirstAlone === true ? new FirstStart() : null;
  return {
    name: options.name,
    probe: async () => ({ ...describeAgent(options, learned), ...(await options.describe?.()) }),
    async open(request) {
      // Loads the protocol code only when the first agent starts, so that the daemon starts quickly.
      const { openOnce } = await import("./open.ts");
      const tries = request.load === null ? 1 : (dialect.load?.tries ?? 1);
      for (let left = tries - 1; ; left -= 1) {
        const open = () => openOnce({ options, dialect, learned, request });
        const { result, isUnanswered } = await (firstAlone === null
          ? open()
          : firstAlone.run(programOf(options), open, (opened) => opened.result.ok));
        if (!isUnanswered || left <= 0) return result;
        options.log.warn({ agent: options.name }, "agent did not answer a load; retrying in a new process");
      }
    },
  };
}

function programOf({ command: [program = ""] }: AcpOptions): string {
  return findCommand(program, process.env["PATH"]) ?? program;
}

function describeAgent(options: AcpOptions, learned: Learned): Agent {
  const command = options.command[0] ?? "";
  const program = findCommand(command, process.env["PATH"]);
  const installed = program !== null;
  return {
    name: options.name,
    title: options.title,
    version: null,
    signedIn: null,
    steer: "none",
    load: true,
    fork: false,
    cost: "tokens",
    questions: true,
    models: [],
    defaultModel: options.model ?? null,
    uses: program === null ? null : [program, ...options.command.slice(1)].join(" "),
    ...options.known,
    ...learned,
    installed,
    problem: installed ? null : `${command} was not found on the PATH`,
    howToInstall: installed ? null : (options.howToInstall ?? `install ${command}`),
  };
}
