import { describeExit } from "../acp/failure.ts";
import { type Fields, isFields } from "../../text/fields.ts";
import type { OpenRequest, OpenResult, Replay } from "../port.ts";
import { within } from "../process/handle.ts";
import type { AgentProcess } from "../process/process.ts";
import { type Channel, openChannel } from "./channel.ts";
import { PiHandle } from "./handle.ts";
import { replayOf } from "./updates.ts";

interface Opening {
  readonly request: OpenRequest;
  /** The requested session, if pi has a file of it. */
  readonly load: string | null;
  readonly version: string | null;
}

/** Never rejects. */
export async function openInTime(process: AgentProcess, opening: Opening): Promise<OpenResult> {
  const { startMs } = opening.request;
  const opened = openSession(process, opening);
  if (await within(opened, startMs)) return opened;
  return { ok: false, reason: "timeout", message: `pi did not answer within ${startMs} ms of its start` };
}

async function openSession(process: AgentProcess, opening: Opening): Promise<OpenResult> {
  const { request, load, version } = opening;
  let handle: PiHandle | null = null;
  const channel = openChannel({
    input: process.stdout,
    output: process.stdin,
    onEvent: (event) => handle?.take(event),
  });
  const state = await channel.send({ type: "get_state" });
  if (!state.ok) return { ok: false, reason: "exited", message: describeExit(await process.exited) };
  const agentSessionId = String(state.data["sessionId"]);
  if (load !== null && agentSessionId !== load) {
    return { ok: false, reason: "no_session", message: "pi no longer has this session" };
  }
  handle = new PiHandle({
    process,
    channel,
    agentSessionId,
    agentVersion: version,
    model: modelOf(state.data),
    replay: request.load === null ? null : await readBack(channel),
    onUpdate: request.onUpdate,
  });
  return { ok: true, handle };
}

async function readBack(channel: Channel): Promise<Replay> {
  const answer = await channel.send({ type: "get_messages" });
  return replayOf(answer.ok ? answer.data["messages"] : []);
}

function modelOf(state: Fields): string | null {
  const { model } = state;
  return isFields(model) ? `${String(model["provider"])}/${String(model["id"])}` : null;
}
