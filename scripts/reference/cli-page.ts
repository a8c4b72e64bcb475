import { EXITS } from "../../src/cli/failure.ts";
import {
  type CommandRow,
  GLOBAL_OPTIONS,
  GROUPS,
  type OptionRow,
  STATUS,
} from "../../src/cli/table/table.ts";
import { code, page, table } from "./markdown.ts";

export function cliPage(): string {
  const exits = Object.values(EXITS).map(([number, meaning]) => [String(number), meaning]);
  return page("CLI", "`src/cli/table/table.ts`", [
    `Bare \`kinfold\`: ${lower(STATUS.summary)} Names and short ids are accepted wherever ids are.`,
    optionTable(GLOBAL_OPTIONS, "Every command takes"),
    table(["Exit code", "Meaning"], exits),
    ...GROUPS.flatMap(({ title, rows }) => [`## ${title}`, ...rows.flatMap(commandBlocks)]),
  ]);
}

function commandBlocks(row: CommandRow): string[] {
  const words = row.args.map(({ name, required, many }) => {
    const word = many ? `${name}…` : name;
    return required ? `<${word}>` : `[${word}]`;
  });
  const args = row.args.map(({ name, summary, choices }) => [code(name), withChoices(summary, choices)]);
  return [
    `### ${["kinfold", row.name, ...words].join(" ").replaceAll(/([<[])/g, "\\$1")}`,
    [row.summary, row.about].filter(Boolean).join(" "),
    args.length === 0 ? "" : table(["Argument", "Meaning"], args),
    row.options.length === 0 ? "" : optionTable(row.options, "Option"),
    row.examples.length === 0
      ? ""
      : ["```text", ...row.examples.map(([line, what]) => `${line}   # ${what}`), "```"].join("\n"),
  ];
}

function optionTable(options: readonly OptionRow[], head: string): string {
  return table(
    [head, "Meaning"],
    options.map(({ flags, summary, choices }) => [code(flags), withChoices(summary, choices)]),
  );
}

function withChoices(summary: string, choices: readonly string[] | undefined): string {
  return choices === undefined ? summary : `${summary}: ${choices.map(code).join(", ")}`;
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
