import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  agentPath,
  answer,
  call,
  event,
  idAt,
  item,
  meta,
  numbered,
  output,
  prompt,
  type Row,
  row,
  spawned,
  turn,
  userItem,
  writeRollout,
} from "./made.ts";

export const IDS = {
  mail: idAt(0, "mail"),
  worker: idAt(3, "worker"),
  nested: idAt(4, "nested"),
  // The earliest session. The rows of its file have ordinals.
  code: idAt(-5, "code"),
  coded: idAt(22, "coded"),
  coded2: idAt(23, "code2"),
  packed: idAt(40, "packed"),
  archived: idAt(50, "arch"),
  flat: "5973b6c0-94b8-487b-a530-2aeb6098ae0e",
  reverted: idAt(60, "rev"),
  revertedTo: idAt(90, "revto"),
  forked: idAt(100, "fork"),
  copies: idAt(120, "copies"),
  copied: idAt(125, "copied"),
  numbered: idAt(126, "number"),
} as const;

export async function layAll(root: string): Promise<void> {
  await layMail(root);
  await layCode(root);
  await writeRollout(root, IDS.packed, session(IDS.packed, 40), { isPacked: true });
  await writeRollout(root, IDS.archived, session(IDS.archived, 50), { isArchived: true });
  await writeRollout(root, IDS.flat, flat());
  await layReverted(root);
  await layCopies(root);
  const index = { id: IDS.archived, thread_name: "The archived one", updated_at: "2026-08-01T12:00:00Z" };
  await writeFile(
    join(root, "session_index.jsonl"),
    `${JSON.stringify({ ...index, thread_name: "Old" })}\nbad\n`,
  );
  await appendFile(join(root, "session_index.jsonl"), `${JSON.stringify(index)}\n`);
}

export function session(id: string, second: number): Row[] {
  const rows = [
    userItem(second, "<environment_context>\n<cwd>/w/app</cwd>\n</environment_context>"),
    ...prompt(second, "Do X"),
    item(second + 1, "reasoning", { summary: [{ type: "summary_text", text: "Thinking." }] }),
    call(second + 2, "call_ls", "shell", { command: ["bash", "-lc", "ls"] }),
    output(second + 3, "call_ls", { output: "a.txt", metadata: { exit_code: 2 } }),
    answer(second + 4, "Done.", { phase: "final_answer" }),
    event(second + 4, "agent_message", { message: "Done." }),
  ];
  return [meta(second, id), ...turn(second, rows)];
}

async function layMail(root: string): Promise<void> {
  const { mail, worker, nested } = IDS;
  const spawn = (second: number, callId: string, name: string, agentId: string, path: string): Row[] => [
    call(second, callId, "spawn_agent", { task_name: name, message: "gAAAA" }),
    event(second, "sub_agent_activity", {
      event_id: callId,
      agent_thread_id: agentId,
      agent_path: path,
      kind: "started",
    }),
    output(second, callId, { task_name: path, nickname: "Raman" }),
  ];
  const report = (from: string, to: string, text: string): Row => ({
    author: from,
    recipient: to,
    content: [
      {
        type: "input_text",
        text: `Message Type: FINAL_ANSWER\nTask name: ${to}\nSender: ${from}\nPayload:\n${text}`,
      },
    ],
  });
  const task = (path: string): Row => ({
    author: path.slice(0, path.lastIndexOf("/")),
    recipient: path,
    content: [
      { type: "input_text", text: `Message Type: NEW_TASK\nTask name: ${path}\nSender: /root\nPayload:\n` },
      { type: "encrypted_content", encrypted_content: "gAAAA" },
    ],
  });
  await writeRollout(root, mail, [
    meta(0, mail),
    ...turn(1, [
      ...prompt(1, "Let someone do X"),
      ...spawn(3, "call_1", "worker", worker, agentPath("worker")),
      row(8, "inter_agent_communication_metadata", { trigger_turn: false }),
      item(8, "agent_message", report(agentPath("worker"), "/root", "X is done")),
      answer(9, "Done.", { phase: "final_answer" }),
    ]),
  ]);
  await writeRollout(root, worker, [
    meta(3, worker, spawned(mail, mail, { agent_path: agentPath("worker") })),
    ...turn(3, [
      item(3, "agent_message", task(agentPath("worker"))),
      ...spawn(4, "call_2", "deep", nested, agentPath("worker", "deep")),
      answer(5, "X is done", { phase: "final_answer" }),
    ]),
  ]);
  await writeRollout(root, nested, [
    meta(4, nested, spawned(worker, mail, { agent_path: agentPath("worker", "deep") })),
    ...turn(4, [item(4, "agent_message", task(agentPath("worker", "deep")))], {
      last_agent_message: null,
      error: { message: "no more credit" },
    }),
  ]);
}

/** Writes a session whose code started sub-agents. Its file does not contain the spawn calls. */
async function layCode(root: string): Promise<void> {
  const { code, coded, coded2 } = IDS;
  const completed = (second: number, fields: Row): Row =>
    event(second, "item_completed", { thread_id: code, item: fields });
  const activity = (second: number, id: string, agentId: string, path: string): Row =>
    completed(second, {
      type: "SubAgentActivity",
      id,
      kind: "started",
      agent_thread_id: agentId,
      agent_path: path,
    });
  const rows = [
    userItem(20, "Use code"),
    completed(20, { type: "UserMessage", id: "u", content: [{ type: "text", text: "Use code" }] }),
    item(21, "custom_tool_call", { call_id: "cell_1", name: "exec", input: "await tools.spawn_agent({})" }),
    activity(22, "nested-1", coded, agentPath("a")),
    activity(23, "nested-2", coded2, agentPath("b")),
    item(24, "custom_tool_call_output", { call_id: "cell_1", output: [{ type: "input_text", text: "ok" }] }),
    answer(25, "Started both."),
  ];
  await writeRollout(
    root,
    code,
    numbered([meta(20, code, { history_mode: "paginated" }), ...turn(20, rows)]),
  );
  const child = (id: string, second: number, path: string): Row[] =>
    numbered([
      meta(second, id, { ...spawned(code, code, { agent_path: path }), history_mode: "paginated" }),
      ...turn(second, [answer(second + 1, `I am ${path}`)]),
    ]);
  await writeRollout(root, coded, child(coded, 22, agentPath("a")));
  await writeRollout(root, coded2, child(coded2, 23, agentPath("b")).slice(0, -1));
}

export function flat(): Row[] {
  const text = (role: string, words: string): Row => ({
    type: "message",
    role,
    content: [{ type: role === "user" ? "input_text" : "output_text", text: words }],
  });
  return [
    { id: IDS.flat, timestamp: "2025-05-07T17:24:21.123Z", instructions: null, git: { branch: "main" } },
    { record_type: "state" },
    text("user", "<environment_context>\n</environment_context>"),
    text("user", "How old is this?"),
    { type: "function_call", name: "shell", arguments: '{"command":["ls","-l"]}', call_id: "call_old" },
    { record_type: "state" },
    {
      type: "function_call_output",
      call_id: "call_old",
      output: '{"output":"old","metadata":{"exit_code":0}}',
    },
    text("assistant", "Very old."),
  ];
}

/**
 * Writes a session that was rolled back to the point before its second turn, and a session that was forked
 * after its first turn.
 */
async function layReverted(root: string): Promise<void> {
  const { reverted, revertedTo, forked } = IDS;
  const turnOf = (second: number, words: string): Row[] =>
    turn(second, [...prompt(second, words), answer(second + 1, `${words}: done`)]);
  const mode = { history_mode: "paginated" };
  const first = numbered([meta(60, reverted, mode), ...turnOf(61, "One")]);
  const second = numbered(turnOf(75, "Two"), first.length);
  await writeRollout(root, reverted, [...first, ...second], { second: 60 });
  const end_byte_offset = Buffer.byteLength(first.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const history_base = { thread_id: reverted, end_ordinal_exclusive: first.length, end_byte_offset };
  const anew = [meta(90, reverted, { ...mode, history_base }), ...turnOf(91, "Another two")];
  await writeRollout(root, reverted, numbered(anew, first.length), { rolloutId: revertedTo, second: 90 });
  const fork = [
    meta(100, forked, { ...mode, history_base, forked_from_id: reverted }),
    event(100, "thread_settings_applied", { thread_id: forked }),
    ...turnOf(101, "Three"),
  ];
  await writeRollout(root, forked, numbered(fork, first.length), { second: 100 });
}

/**
 * Writes sub-agents that begin with a copy of their parent's rows. The copied rows have the time of copying
 * as their timestamp.
 */
async function layCopies(root: string): Promise<void> {
  const { copies, copied, numbered: withNumbers } = IDS;
  const parent = [
    meta(120, copies),
    ...turn(121, [
      ...prompt(121, "Fork yourself"),
      call(122, "call_other", "spawn_agent", { message: "someone else" }),
      output(122, "call_other", "no more agents are allowed"),
      call(124, "call_copy", "spawn_agent", { message: "Do it", fork_context: true }),
      output(125, "call_copy", { agent_id: copied, nickname: "Kant" }),
      call(125, "call_number", "spawn_agent", { message: "Do it too", fork_context: true }),
      output(126, "call_number", { agent_id: withNumbers, nickname: "Hume" }),
      answer(127, "Done."),
    ]),
  ];
  await writeRollout(root, copies, parent);
  const own = (second: number, words: string): Row[] =>
    turn(second, [...prompt(second, words), answer(second + 1, `${words}: done`)]);
  const copy = parent.slice(0, 5).map((one) => ({ ...one, timestamp: "2026-08-01T10:02:05.500Z" }));
  const child = meta(125, copied, { ...spawned(copies, copies), forked_from_id: copies });
  await writeRollout(root, copied, [child, ...copy, ...own(125, "Do it")]);
  const start = { subagent_history_start_ordinal: 1 + copy.length };
  const other = meta(126, withNumbers, { ...spawned(copies, copies), history_mode: "paginated", ...start });
  await writeRollout(root, withNumbers, numbered([other, ...copy, ...own(126, "Do it too")]));
}
