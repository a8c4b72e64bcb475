import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { type CommandModule, Flags } from "./call.ts";
import { type ExitName, EXITS, type Failure, refused } from "./failure.ts";
import { COMMANDS, type CommandRow, GLOBAL_OPTIONS, GROUPS, type OptionRow, STATUS } from "./table/table.ts";
import { parseDuration, parseInteger, parseNumber } from "./value.ts";
import { nearest } from "../text/nearest.ts";

/** A command to run, or text to print (help, version). */
export type Asked =
  | {
      readonly kind: "run";
      readonly row: CommandRow;
      readonly args: readonly string[];
      readonly flags: Flags;
    }
  | { readonly kind: "text"; readonly text: string };

/** Rejects only with a `Failure`, which says what to do next. */
export async function readCommandLine(argv: readonly string[], version: string): Promise<Asked> {
  let asked: Asked | null = null;
  let said = "";
  const [first, about] = argv;
  if (first === "help" && about !== undefined && !COMMANDS.some(({ name }) => name === about))
    throw unknownWord(about);
  const program = buildProgram(version, (row, args, flags) => {
    asked = { kind: "run", row, args, flags };
  });
  for (const command of [program, ...program.commands]) {
    command.exitOverride();
    command.configureOutput({ writeOut: (text) => void (said += text), writeErr: () => {} });
  }
  try {
    await program.parseAsync(dashWordsLast(argv), { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw wrongUse(error, argv);
    return { kind: "text", text: said };
  }
  return asked ?? { kind: "text", text: said };
}

/** Loads only this command: most commands need packages that the others do not. */
export async function loadCommand({ name }: CommandRow): Promise<CommandModule> {
  const module: CommandModule = await import(`./commands/${name}.ts`);
  return module;
}

/**
 * Moves words such as `-test` behind `--`, so that commander does not read them as options. Does so only for
 * commands with `dashWords`, which accept their words in any order.
 */
function dashWordsLast(argv: readonly string[]): string[] {
  const row = COMMANDS.find(({ name }) => name === argv.find((word) => !word.startsWith("-")));
  if (row?.dashWords !== true || argv.includes("--")) return [...argv];
  const isWord = (word: string): boolean => /^-[^-]./.test(word);
  const words = argv.filter(isWord);
  return words.length === 0 ? [...argv] : [...argv.filter((word) => !isWord(word)), "--", ...words];
}

type OnAsked = (row: CommandRow, args: readonly string[], flags: Flags) => void;

function buildProgram(version: string, onAsked: OnAsked): Command {
  const program = new Command("kinfold")
    .description(
      "Any coding agent can raise a family of other agents, and nothing a child does is ever lost.",
    )
    .usage("[command] [options]")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "Print help for a command.")
    .allowUnknownOption()
    .allowExcessArguments();
  for (const option of GLOBAL_OPTIONS) program.addOption(toOption(option));
  program.action((_options: unknown, command: Command) => {
    const [word] = command.args;
    if (word !== undefined) throw unknownWord(word);
    onAsked(STATUS, [], new Flags(command.opts()));
  });
  for (const group of GROUPS) {
    for (const row of group.rows) program.addCommand(toCommand(row, onAsked).helpGroup(`${group.title}:`));
  }
  program.addHelpText(
    "after",
    `\nWithout a command, kinfold prints what is going on.\n\n${exitText(Object.keys(EXITS) as ExitName[])}`,
  );
  return program;
}

function toCommand(row: CommandRow, onAsked: OnAsked): Command {
  const command = new Command(row.name).summary(row.summary).helpOption("-h, --help", "print help");
  command.description(row.about === undefined ? row.summary : `${row.summary}\n\n${row.about}`);
  for (const arg of row.args) {
    const name = arg.many ? `${arg.name}...` : arg.name;
    const argument = new Argument(arg.required ? `<${name}>` : `[${name}]`, arg.summary);
    if (arg.choices) argument.choices([...arg.choices]);
    command.addArgument(argument);
  }
  for (const option of [...row.options, ...GLOBAL_OPTIONS]) command.addOption(toOption(option));
  command.addHelpText("after", `${exampleText(row)}\n${exitText(row.exits)}`);
  return command.action(() => onAsked(row, command.args, new Flags(command.optsWithGlobals())));
}

function toOption(row: OptionRow): Option {
  const option = new Option(row.flags, row.summary);
  if (row.choices) option.choices([...row.choices]);
  if (row.kind) option.argParser((text: string) => parsed(row, text));
  return option;
}

function parsed(row: OptionRow, text: string): number {
  const [parse, wants] = VALUES[row.kind ?? "int"];
  const value = parse(text);
  if (value !== null) return value;
  throw new InvalidArgumentError(wants);
}

const VALUES = {
  int: [parseInteger, "Use a whole number."],
  number: [parseNumber, "Use a number, such as 10 or 2.5."],
  duration: [parseDuration, "Use a time, such as 90s, 30m or 2h."],
} as const;

function exampleText(row: CommandRow): string {
  if (row.examples.length === 0) return "";
  const lines = row.examples.map(([line, what]) => `  ${line}\n      ${what}`);
  return `\nExamples:\n${lines.join("\n")}\n`;
}

function exitText(names: readonly ExitName[]): string {
  return `Exit codes:\n${names.map((name) => `  ${EXITS[name][0]}  ${EXITS[name][1]}`).join("\n")}`;
}

function unknownWord(word: string): Failure {
  if (word.startsWith("-")) {
    return refused("wrong_use", `There is no option ${word}.`, ["All options: kinfold --help"]);
  }
  const names = COMMANDS.map((row) => row.name);
  const [close] = nearest(word, names);
  const meant = close === undefined ? [] : [`Did you mean: kinfold ${close}`];
  const next = [...meant, "All commands: kinfold help"];
  return refused("unknown_command", `There is no command "${word}".`, next);
}

/** Ends commander's sentence with a full stop and adds a pointer to the help. */
function wrongUse(error: CommanderError, argv: readonly string[]): Failure {
  const [first = "", ...rest] = error.message.replace(/^error: /, "").split("\n");
  const row = COMMANDS.find((candidate) => argv.includes(candidate.name));
  const sentence = first.charAt(0).toUpperCase() + first.slice(1).replace(/\.?$/, ".");
  const hints = rest.map((line) => line.replace(/^\((.*)\)$/, "$1")).filter((line) => line !== "");
  const examples = row?.examples.slice(0, 1).map(([line]) => `Example: ${line}`) ?? [];
  const help = row === undefined ? "kinfold --help" : `kinfold ${row.name} --help`;
  return refused("wrong_use", sentence, [...hints, ...examples, `Help: ${help}`]);
}
