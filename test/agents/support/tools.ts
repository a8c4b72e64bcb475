import type { ScriptedCall } from "../model/script.ts";
import type { ProgramName } from "./cache.ts";

/** Every agent has different names for the same tools and for their parameters. */
export interface Tools {
  readonly shell: (command: string) => ScriptedCall;
  readonly write: (path: string, text: string) => ScriptedCall;
  readonly read: (path: string) => ScriptedCall;
}

const codexShell = (command: string): ScriptedCall => ({
  tool: ["exec_command", "shell_command"],
  input: { cmd: command, command },
});

export const TOOLS: Readonly<Record<ProgramName, Tools>> = {
  claude: {
    shell: (command) => ({ tool: "Bash", input: { command, description: "runs it" } }),
    write: (path, content) => ({ tool: "Write", input: { file_path: path, content } }),
    read: (path) => ({ tool: "Read", input: { file_path: path } }),
  },
  codex: {
    shell: codexShell,
    write: (path, text) => ({
      tool: "apply_patch",
      input: `*** Begin Patch\n*** Add File: ${path}\n+${text}\n*** End Patch\n`,
    }),
    // Codex has no tool for reading a file.
    read: (path) => codexShell(`cat ${path}`),
  },
  gemini: {
    shell: (command) => ({ tool: "run_shell_command", input: { command, description: "runs it" } }),
    write: (path, content) => ({ tool: "write_file", input: { file_path: path, content } }),
    read: (path) => ({ tool: "read_file", input: { file_path: path } }),
  },
  opencode: {
    shell: (command) => ({ tool: "bash", input: { command, description: "runs it" } }),
    write: (path, content) => ({ tool: "write", input: { filePath: path, content } }),
    read: (path) => ({ tool: "read", input: { filePath: path } }),
  },
  pi: {
    shell: (command) => ({ tool: "bash", input: { command } }),
    write: (path, content) => ({ tool: "write", input: { path, content } }),
    read: (path) => ({ tool: "read", input: { path } }),
  },
};
