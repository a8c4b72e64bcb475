import type { AgentHandle } from "../../drivers/port.ts";
import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { ProcessLease } from "../agent/process-lease.ts";
import { AgentSlot, type Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";

export interface Running {
  readonly slot: AgentSlot;
  readonly recorder: Recorder;
}

export function aLease({ id, fence }: SessionRecord): ProcessLease {
  return { id: "lease", session: id, fence, token: "token" };
}

/** An agent whose handle does nothing except what the test defines. */
export function aLiveAgent(handle: Partial<AgentHandle> = {}): AgentHandle {
  const quiet: Partial<AgentHandle> = {
    exited: new Promise(() => undefined),
    stop: async () => ({ left: [] }),
    background: async () => false,
    cancel: () => undefined,
  };
  return { ...quiet, ...handle } as AgentHandle;
}

/** Returns a slot whose agent has started and is in a turn. */
export async function aRunningSlot(
  runtime: Runtime,
  of: { session: SessionRecord; turn: TurnRecord },
  handle: Partial<AgentHandle> = {},
): Promise<Running> {
  const slot = new AgentSlot(runtime, { ...of, lease: aLease(of.session) });
  await slot.start(async () => ({ ok: true, agent: aLiveAgent(handle) }));
  return { slot, recorder: slot.recorder! };
}
