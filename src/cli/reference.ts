import { EXITS } from "./failure.ts";
import { COMMANDS, type CommandRow, GLOBAL_OPTIONS, GROUPS, type OptionRow } from "./table.ts";

/** `docs/reference/cli.md`, made from the command table. */
export function cliReference(): string {
  const parts = [
    "# The command line",
    "",
    "Made from the command table (`src/cli/table.ts`); do not edit by hand.",
    "",
    "Bare `kinfold` prints what is going on. Wherever a session is meant, its id, its short id or its name is accepted.",
    "Colours and live drawing appear on a terminal only (`NO_COLOR` is respected); in a pipe the output is plain text.",
    'With `--json` the answer is JSON on standard output; an error is `{ "error": { "code", "message", "next", "details" } }`.',
    "Commands talk to the daemon of the home, or to `KINFOLD_URL` with `KINFOLD_TOKEN`.",
    "",
    "## Everywhere",
    "",
    ...optionTable(GLOBAL_OPTIONS),
    "",
    "## Exit codes",
    "",
    "| code | meaning |",
    "|--:|---|",
    ...Object.values(EXITS).map(([code, meaning]) => `| ${code} | ${meaning} |`),
    "",
    "## Commands",
    "",
    ...GROUPS.flatMap((group) => [
      `**${group.title}**: ${group.rows.map((row) => `[${row.name}](#kinfold-${row.name})`).join(" · ")}`,
      "",
    ]),
    ...COMMANDS.flatMap(section),
  ];
  return `${parts.join("\n").trimEnd()}\n`;
}

function section(row: CommandRow): string[] {
  const args = row.args.map((arg) => {
    const name = arg.many ? `${arg.name}...` : arg.name;
    return arg.required ? `<${name}>` : `[${name}]`;
  });
  return [
    `### kinfold ${row.name}`,
    "",
    row.summary,
    ...(row.about === undefined ? [] : ["", row.about]),
    "",
    "```text",
    ["kinfold", row.name, ...args, ...(row.options.length > 0 ? ["[options]"] : [])].join(" "),
    "```",
    "",
    ...row.args.map(
      (arg) => `- \`${arg.name}\`: ${arg.summary}${arg.choices ? ` (${arg.choices.join(", ")})` : ""}`,
    ),
    ...(row.args.length > 0 ? [""] : []),
    ...(row.options.length > 0 ? [...optionTable(row.options), ""] : []),
    ...exampleBlock(row),
    `Exit codes: ${row.exits.map((name) => `${EXITS[name][0]} ${EXITS[name][1]}`).join("; ")}.`,
    "",
  ];
}

function exampleBlock(row: CommandRow): string[] {
  if (row.examples.length === 0) return [];
  return ["```sh", ...row.examples.map(([line, what]) => (what ? `${line}   # ${what}` : line)), "```", ""];
}

function optionTable(options: readonly OptionRow[]): string[] {
  const rows = options.map((option) => {
    const choices = option.choices ? ` (${option.choices.join(", ")})` : "";
    return `| \`${option.flags}\` | ${(option.summary + choices).replaceAll("|", "\\|")} |`;
  });
  return ["| option | |", "|---|---|", ...rows];
}
