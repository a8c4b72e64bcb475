/** OpenCode's own report about a sub-agent. */
export interface TaskTag {
  readonly agentId: string;
  readonly state: "running" | "completed" | "error";
  readonly error: string | null;
}

/** The whole text must be one `<task>` element. A text that merely contains one gives null. */
export function readTaskTag(text: string): TaskTag | null {
  const head = /^<task id="([\w-]{1,200})" state="(running|completed|error)">/u.exec(text);
  if (head === null || !text.trimEnd().endsWith("</task>")) return null;
  const [, agentId, state] = head as unknown as [string, string, TaskTag["state"]];
  const error = state === "error" ? (inside(text, "task_error") ?? text) : null;
  return { agentId, state, error };
}

/** Finds the sub-agent's id in a line of text. Old versions always write it, newer ones only for failures. */
export function agentIdIn(text: string): string | null {
  return /\btask_id: (ses_[\w-]{1,200})/u.exec(text.slice(0, 2000))?.[1] ?? null;
}

function inside(text: string, name: string): string | null {
  const start = text.indexOf(`<${name}>`);
  const end = text.lastIndexOf(`</${name}>`);
  return start < 0 || end < start ? null : text.slice(start + name.length + 2, end).trim();
}
