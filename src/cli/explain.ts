import { ConfigError } from "../config/problem.ts";
import { Refusal } from "../contract/index.ts";
import { causeOf } from "./daemon/connection.ts";
import { failed, Failure, noDaemon, refused } from "./failure.ts";

/** Turns anything that a command threw into a message that a person can act on. */
export function explain(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof Refusal) return fromRefusal(error);
  if (error instanceof ConfigError) {
    const isHome = error.what === "home";
    return refused(isHome ? "bad_home" : "bad_config", error.message, [
      isHome ? "Or use a home of your own: KINFOLD_HOME=…" : "Fix it: kinfold config edit",
    ]);
  }
  if (isNetworkTrouble(error)) {
    return noDaemon("daemon_unreachable", `The connection to the daemon was lost: ${causeOf(error)}.`, [
      "Nothing that was accepted is lost. Check: kinfold",
      "Start it if it is not running: kinfold up",
    ]);
  }
  if (isSystemTrouble(error)) return failed(error.code ?? "failed", systemSentence(error));
  const text = error instanceof Error ? error.message : String(error);
  return failed("internal", `This is a bug in Kinfold: ${text}`, [
    "Please report it with the output of: KINFOLD_DEBUG=1 kinfold …",
  ]);
}

function fromRefusal(refusal: Refusal): Failure {
  return new Failure("refused", refusal.message, {
    code: refusal.code,
    details: refusal.details,
    next: NEXT[refusal.code] ?? [],
  });
}

function isNetworkTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return /ECONNREFUSED|ECONNRESET|EPIPE|UND_ERR|fetch failed|socket hang up|terminated/.test(
    `${error.message} ${causeOf(error)}`,
  );
}

function isSystemTrouble(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === "string";
}

function systemSentence(error: NodeJS.ErrnoException): string {
  const what = SYSTEM[error.code ?? ""] ?? error.message;
  return error.path === undefined ? what : `${error.path}: ${what}`;
}

const SYSTEM: Record<string, string> = {
  ENOENT: "no such file or folder.",
  EACCES: "you do not have permission to read or write this.",
  EPERM: "you do not have permission to do this.",
  ENOSPC: "the disk is full.",
  EROFS: "this file system is read-only.",
  EISDIR: "this is a folder.",
  ENOTDIR: "a part of this path is not a folder.",
  EEXIST: "this already exists.",
};

/** Next steps after a refusal. They are added here because the daemon's messages name no CLI commands. */
const NEXT: Partial<Record<Refusal["code"], readonly string[]>> = {
  unknown_agent: ["Agents on this machine: kinfold doctor"],
  agent_not_installed: ["Agents on this machine: kinfold doctor"],
  unknown_profile: ["List the profiles: kinfold profiles"],
  bad_profile: ["The files with errors: kinfold profiles"],
  untrusted_project: ["Read its files first: .kinfold/agents/*.md"],
  unknown_trigger: ["What needs you: kinfold inbox"],
  already_answered: ["What else needs you: kinfold inbox"],
  cannot_meter: ["Leave this limit out, or use --minutes or --turns."],
  empty_prompt: ['Example: kinfold spawn "Review src/auth for bugs"'],
  session_ended: ["Reopen it: kinfold reopen NAME", 'Or start a new one: kinfold spawn "…"'],
  parent_ended: ["What is open: kinfold ls"],
  limit_children: ["What is open: kinfold tree", "The limits: kinfold config"],
  limit_sessions: ["What is open: kinfold tree", "The limits: kinfold config"],
  limit_depth: ["The limits: kinfold config"],
  key_reused: ["Use another --key, or leave it out."],
  busy: ["The request was retried several times. Try again in a moment."],
  store_busy: ["Try again in a moment."],
  disk_full: ["Free some disk space; nothing was changed. Sizes: kinfold doctor"],
  internal: ["The daemon's log has the details: kinfold logs"],
};
