import type { ExitName } from "../failure.ts";
import { ACCESS } from "./access.ts";
import { ANSWER } from "./answer.ts";
import { OBSERVE } from "./observe.ts";
import { OPERATE } from "./operate.ts";
import { START } from "./start.ts";

export interface ArgumentRow {
  readonly name: string;
  readonly summary: string;
  readonly required?: boolean;
  readonly many?: boolean;
  readonly choices?: readonly string[];
  readonly completes?: "session" | "file" | "folder";
}

export interface OptionRow {
  /** In commander's syntax: `-n, --lines <count>`. */
  readonly flags: string;
  readonly summary: string;
  readonly kind?: "int" | "number" | "duration";
  readonly choices?: readonly string[];
  readonly completes?: "session" | "file" | "folder";
}

/** A command, implemented in `commands/<name>.ts`. Help, completion and reference are made from this. */
export interface CommandRow {
  readonly name: string;
  readonly summary: string;
  readonly about?: string;
  readonly args: readonly ArgumentRow[];
  readonly options: readonly OptionRow[];
  /** True if a word such as `-test` is an argument of this command, not an option. */
  readonly dashWords?: true;
  readonly examples: readonly (readonly [line: string, what: string])[];
  readonly exits: readonly ExitName[];
}

export const GLOBAL_OPTIONS: readonly OptionRow[] = [
  { flags: "--json", summary: "print JSON, for scripts" },
  {
    flags: "--home <folder>",
    summary: "use this home instead of KINFOLD_HOME or ~/.kinfold",
    completes: "folder",
  },
];

/**
 * A row that may leave out the fields in `DEFAULTS`. The default exit codes include `refused` and `noDaemon`,
 * because most commands ask the daemon.
 */
export type CommandSpec = Pick<CommandRow, "name" | "summary"> & Partial<CommandRow>;

const DEFAULTS = { args: [], options: [], examples: [], exits: ["done", "refused", "noDaemon"] } as const;

export const GROUPS: readonly { readonly title: string; readonly rows: readonly CommandRow[] }[] = [
  { title: "Start work", rows: START },
  { title: "What needs you", rows: ANSWER },
  { title: "See what is going on", rows: OBSERVE },
  { title: "Agents, profiles and keys", rows: ACCESS },
  { title: "The daemon", rows: OPERATE },
].map(({ title, rows }) => ({ title, rows: rows.map((row) => ({ ...DEFAULTS, ...row })) }));

/** The command that runs if the person names none. */
export const STATUS: CommandRow = {
  ...DEFAULTS,
  name: "status",
  summary: "Show what needs you, what runs, what has finished, and which agents there are.",
  exits: ["done", "failed"],
};

export const COMMANDS: readonly CommandRow[] = GROUPS.flatMap((group) => group.rows);
