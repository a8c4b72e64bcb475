import {
  type ArgumentRow,
  COMMANDS,
  type CommandRow,
  GLOBAL_OPTIONS,
  type OptionRow,
} from "./table/table.ts";

export type Shell = "bash" | "zsh" | "fish";

/** Returns a completion script made from the command table. The script asks the daemon for session names. */
export function completionScript(shell: Shell): string {
  return { bash, zsh, fish }[shell]();
}

/** The shell command that lists session names; prints nothing if no daemon runs. */
const SESSIONS =
  'kinfold ls --all --json 2>/dev/null | sed -n \'s/^      "\\(name\\|shortId\\)": "\\(.*\\)",*$/\\2/p\'';

function bash(): string {
  const cases = COMMANDS.map((row) => {
    const values = optionsOf(row).flatMap((option) => {
      const words = bashWords(option);
      return words === null ? [] : [`        ${option.names.join("|")}) ${words}; return ;;`];
    });
    const plain = row.args.map((arg) => argWords(arg)).find((words) => words !== null);
    return `    ${row.name})
      case "$prev" in
${values.join("\n")}
      esac
      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "${optionNames(row).join(" ")}" -- "$cur")); return; fi
      ${plain ?? ":"}
      ;;`;
  });
  return `# kinfold completion for bash. In ~/.bashrc: source <(kinfold completion bash)
_kinfold_sessions() { ${SESSIONS}; }
_kinfold() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "${[...COMMANDS.map((row) => row.name), "help", "--help", "--version", "--json"].join(" ")}" -- "$cur"))
    return
  fi
  case "$command" in
${cases.join("\n")}
  esac
}
complete -F _kinfold kinfold
`;
}

function zsh(): string {
  const cases = COMMANDS.map((row) => {
    const specs = [
      ...optionsOf(row).map((option) => zshOption(option)),
      ...row.args.map((arg, i) => `'${arg.many ? "*" : i + 1}:${escaped(arg.name)}:${zshValues(arg)}'`),
    ];
    return `    ${row.name}) _arguments ${specs.join(" \\\n      ")} ;;`;
  });
  return `#compdef kinfold
# kinfold completion for zsh. Save it as _kinfold in a folder of $fpath.
_kinfold_sessions() { local -a names; names=("\${(@f)$(${SESSIONS})}"); compadd -a names }
_kinfold() {
  if (( CURRENT == 2 )); then
    local -a commands=(
${COMMANDS.map((row) => `      '${row.name}:${escaped(row.summary)}'`).join("\n")}
      'help:Print help for a command.'
    )
    _describe command commands
    return
  fi
  local command=\${words[2]}
  shift words
  (( CURRENT-- ))
  case "$command" in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_kinfold" ]; then _kinfold "$@"; else compdef _kinfold kinfold; fi
`;
}

function fish(): string {
  const lines = [
    "# kinfold completion for fish. Save it as ~/.config/fish/completions/kinfold.fish",
    `function __kinfold_sessions; ${SESSIONS}; end`,
    "complete -c kinfold -f",
    ...COMMANDS.map(
      (row) => `complete -c kinfold -n __fish_use_subcommand -a ${row.name} -d '${escaped(row.summary)}'`,
    ),
  ];
  for (const row of COMMANDS) {
    const when = `-n '__fish_seen_subcommand_from ${row.name}'`;
    for (const option of optionsOf(row)) {
      const names = option.names
        .map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
        .join(" ");
      lines.push(
        `complete -c kinfold ${when} ${names} ${fishValues(option)}-d '${escaped(option.row.summary)}'`,
      );
    }
    for (const arg of row.args) {
      const words = arg.choices?.join(" ") ?? (arg.completes === "session" ? "(__kinfold_sessions)" : null);
      if (words !== null) lines.push(`complete -c kinfold ${when} -a '${words}'`);
      else if (arg.completes === "file") lines.push(`complete -c kinfold ${when} -F`);
    }
  }
  return `${lines.join("\n")}\n`;
}

interface Named {
  readonly row: OptionRow;
  readonly names: readonly string[];
  readonly takesValue: boolean;
}

function optionsOf(row: CommandRow): Named[] {
  return [...row.options, ...GLOBAL_OPTIONS, HELP].map((option) => ({
    row: option,
    names: option.flags.split(/,? +/).filter((word) => word.startsWith("-")),
    takesValue: option.flags.includes("<"),
  }));
}

function optionNames(row: CommandRow): string[] {
  return optionsOf(row).flatMap((option) => option.names);
}

function bashWords(option: Named): string | null {
  if (!option.takesValue) return null;
  return argWords(option.row) ?? "COMPREPLY=()";
}

function argWords(row: Pick<ArgumentRow, "choices"> & { completes?: string | undefined }): string | null {
  if (row.choices) return `COMPREPLY=($(compgen -W "${row.choices.join(" ")}" -- "$cur"))`;
  if (row.completes === "session")
    return `local IFS=$'\\n'; COMPREPLY=($(compgen -W "$(_kinfold_sessions)" -- "$cur"))`;
  if (row.completes === "file") return `COMPREPLY=($(compgen -f -- "$cur"))`;
  return row.completes === "folder" ? `COMPREPLY=($(compgen -d -- "$cur"))` : null;
}

function zshOption(option: Named): string {
  const value = option.takesValue ? `:value:${zshValues(option.row)}` : "";
  const head =
    option.names.length > 1
      ? `'(${option.names.join(" ")})'{${option.names.join(",")}}`
      : `'${option.names[0] ?? ""}`;
  const quote = option.names.length > 1 ? "'" : "";
  return `${head}${quote}[${escaped(option.row.summary)}]${value}'`;
}

function zshValues(row: { choices?: readonly string[]; completes?: string }): string {
  if (row.choices) return `(${row.choices.join(" ")})`;
  if (row.completes === "session") return "_kinfold_sessions";
  if (row.completes === "file") return "_files";
  return row.completes === "folder" ? "_files -/" : " ";
}

function fishValues(option: Named): string {
  if (!option.takesValue) return "";
  if (option.row.choices) return `-x -a '${option.row.choices.join(" ")}' `;
  if (option.row.completes === "session") return "-x -a '(__kinfold_sessions)' ";
  return option.row.completes === undefined ? "-x " : "-r -F ";
}

/** Makes text safe inside single quotes and inside zsh's `[…]` and colon-separated fields. */
function escaped(text: string): string {
  return text.replaceAll("'", "’").replaceAll("[", "(").replaceAll("]", ")").replaceAll(":", "\\:");
}

const HELP: OptionRow = { flags: "-h, --help", summary: "print help" };
