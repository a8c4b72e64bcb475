export interface ConfigProblem {
  /** A file, or a variable such as `KINFOLD_PORT`. */
  readonly where: string;
  readonly line: number | null;
  readonly key: string | null;
  readonly text: string;
}

/** The message lists every problem, so that all can be fixed at once. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];
  readonly what: "configuration" | "home";

  constructor(problems: readonly ConfigProblem[], what: "configuration" | "home" = "configuration") {
    super([`The ${what} cannot be used:`, ...problems.map((p) => `  ${problemLine(p)}`)].join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
    this.what = what;
  }
}

export function problemIn(where: string, text: string, line: number | null = null): ConfigProblem {
  return { where, line, key: null, text };
}

export function problemLine(problem: ConfigProblem): string {
  const place = problem.line === null ? problem.where : `${problem.where}:${problem.line}`;
  return problem.key === null ? `${place}: ${problem.text}` : `${place}: ${problem.key} ${problem.text}`;
}
