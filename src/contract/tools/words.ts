import type { ToolWords } from "./tool.ts";

const text = { type: "string" } as const;
const texts = { type: "array", items: text } as const;
const said = (description: string) => ({ type: "string", description }) as const;
const oneOf = (...values: readonly string[]) => ({ type: "string", enum: values }) as const;

/** The tools in the order a model reads them. Every byte takes context in every agent. */
export const TOOL_WORDS = [
  {
    name: "spawn_session",
    title: "Spawn child session",
    description:
      "Spawn a child session: delegate a task to another coding agent (Claude Code, Codex, Gemini, …) in the background. Returns its id at once; the result comes to you later as a message.",
    parameters: {
      prompt: said("self-contained: what to do, where, what to report"),
      name: said("short label; the same name again returns the same child"),
      profile: said("e.g. reviewer"),
      agent: said("claude, codex, gemini, …; default yours"),
      model: text,
      cwd: text,
      workspace: {
        ...oneOf("clone", "shared"),
        description: "clone: own copy, changes come back as a git ref; shared: your files",
      },
      inherit: oneOf("none", "brief", "tail", "fork"),
      permission: { ...oneOf("read-only", "ask", "workspace", "full"), description: "at most yours" },
      check: said("command Kinfold runs at the end"),
      limits: {
        type: "object",
        properties: {
          usd: { type: "number" },
          tokens: { type: "integer" },
          turns: { type: "integer" },
          minutes: { type: "number" },
        },
      },
      callback: { type: "boolean" },
    },
    required: ["prompt"],
    reads: false,
    alwaysLoaded: true,
  },
  {
    name: "subagent",
    title: "Spawn subagent",
    description:
      "Run a short task in a subagent, or several in parallel or as a chain, and wait here for the answer. For longer work use spawn_session.",
    parameters: {
      tasks: {
        type: "array",
        items: {
          type: "object",
          properties: {
            task: said("in a chain, {previous} is the answer before"),
            profile: text,
            agent: text,
          },
          required: ["task"],
        },
      },
      mode: oneOf("parallel", "chain"),
    },
    required: ["tasks"],
    reads: false,
    alwaysLoaded: true,
  },
  {
    name: "wait_session",
    title: "Wait for child session",
    description:
      "Wait for a child session to finish and get its result, only when you cannot go on without it; also returns questions for you. A timeout is normal: go on, end your turn, or call again with the cursor.",
    parameters: {
      ids: { ...texts, description: "default: all open children" },
      until: oneOf("any", "all"),
      timeoutMs: { type: "integer", description: "0: just look" },
      cursor: text,
    },
    required: [],
    reads: true,
    alwaysLoaded: true,
  },
  {
    name: "cancel_session",
    title: "Cancel child session",
    description:
      "Stop a running child session and all below it when its work is no longer wanted, not because it is slow. Keeps its work; reports what could not be stopped.",
    parameters: { sessionId: text, reason: text },
    required: ["sessionId"],
    fields: { sessionId: "id" },
    reads: false,
    alwaysLoaded: false,
  },
  {
    name: "tell_child",
    title: "Message child session",
    description:
      "Send a message to a child session: a correction, or more work after it finished; it keeps its context, so prefer this to a new spawn. The reply says: injected, queued or restarted.",
    parameters: {
      sessionId: text,
      message: text,
      deliverAs: { ...oneOf("steer", "followUp"), description: "into the running turn, or after it" },
    },
    required: ["sessionId", "message"],
    fields: { sessionId: "id" },
    reads: false,
    alwaysLoaded: true,
  },
  {
    name: "list_sessions",
    description:
      "Show your family: parent, children, grandchildren with state, cost, open triggers, unread messages. Use it after a compaction or restart, not to poll.",
    parameters: { status: oneOf("open", "ended", "all") },
    required: [],
    reads: true,
    alwaysLoaded: true,
  },
  {
    name: "get_session",
    description:
      "Read one session: full result, transcript, diff, or receipt (what Kinfold saw it do). Use it when a result was cut or to check a claim.",
    parameters: {
      sessionId: text,
      view: oneOf("result", "transcript", "diff", "receipt", "inherited"),
      cursor: text,
    },
    required: ["sessionId"],
    fields: { sessionId: "id" },
    reads: true,
    alwaysLoaded: false,
  },
  {
    name: "respond_to_trigger",
    description:
      "Answer a child's question, plan or permission request by the ID in its `<!-- trigger:ID -->` line. A finished child needs no answer; followUp gives it more work, ack closes it.",
    parameters: {
      triggerId: text,
      response: text,
      action: {
        ...oneOf("approve", "edit", "cancel", "allow", "deny", "followUp", "ack"),
        description: "plan: approve, edit, cancel; permission: allow, deny",
      },
    },
    required: ["triggerId"],
    fields: { triggerId: "id" },
    reads: false,
    alwaysLoaded: true,
  },
  {
    name: "escalate_trigger",
    description:
      "Pass a child's trigger to the human when you cannot or may not decide it. The answer goes to the child; you are told.",
    parameters: { triggerId: text, context: text },
    required: ["triggerId"],
    fields: { triggerId: "id" },
    reads: false,
    alwaysLoaded: true,
  },
  {
    name: "fire_trigger",
    description:
      "Notify another session of an event without waiting: your parent (progress, a finding), a child, or one that accepts the type.",
    parameters: {
      sessionId: said('id, name or "parent"'),
      type: text,
      payload: { type: "object" },
      deliverAs: oneOf("steer", "followUp"),
    },
    required: ["sessionId", "type", "payload"],
    fields: { sessionId: "id" },
    reads: false,
    alwaysLoaded: false,
  },
  {
    name: "ask_user_question",
    description:
      "Ask your parent agent, or through it the human, a question and wait for the answer. Only for what blocks you; without an answer in time the default holds.",
    parameters: {
      questions: {
        type: "array",
        items: {
          type: "object",
          properties: { question: text, options: texts, type: oneOf("radio", "checkbox", "ranked") },
          required: ["question"],
        },
      },
      default: text,
    },
    required: ["questions"],
    reads: false,
    alwaysLoaded: true,
    attached: false,
  },
  {
    name: "plan_review",
    description:
      "Submit a plan to your parent agent or the human and wait for approval. On edit revise and resubmit; do not start before approve.",
    parameters: { title: text, steps: texts, description: text },
    required: ["title", "steps"],
    reads: false,
    alwaysLoaded: true,
    attached: false,
  },
  {
    name: "session_search",
    description:
      'Full-text search in session transcripts, your parent\'s by default. Words, "phrases", -not, agent: author: tool: path: before: after:.',
    parameters: { query: text, sessionId: said('or "all"'), cursor: text },
    required: ["query"],
    fields: { sessionId: "id" },
    reads: true,
    alwaysLoaded: false,
  },
  {
    name: "checkpoint",
    description:
      "Save a summary, focus and constraints for your children and your later self. New children inherit the latest.",
    parameters: {
      summary: text,
      entities: texts,
      constraints: { type: "object", additionalProperties: text, description: "empty withdraws" },
    },
    required: ["summary"],
    reads: false,
    alwaysLoaded: false,
  },
  {
    name: "list_models",
    description:
      "List installed agents, their models, profiles and remaining usage. Only when the user names one or a spawn was refused.",
    parameters: { agent: text },
    required: [],
    reads: true,
    alwaysLoaded: false,
  },
] as const satisfies readonly ToolWords[];

/** `create_session`, the source design's name for a spawn. Always accepted, but listed only if configured. */
export const ALIAS_WORDS = {
  name: "create_session",
  description: "The same as spawn_session: session_type is the profile, and the child inherits nothing.",
  parameters: { session_type: text, prompt: text },
  required: ["session_type", "prompt"],
  fields: { session_type: "profile" },
  reads: false,
  alwaysLoaded: false,
} as const satisfies ToolWords;
