import type { Agent } from "../../contract/index.ts";
import type { ProcessFence, SessionRecord } from "../../store/port/store.ts";
import type { Hold } from "../turn/claim.ts";
import type { EngineDeps } from "../deps.ts";
import type { LiveAgent } from "./start.ts";
import { OpenRequests } from "../request/open-requests.ts";
import type { Recorder } from "../record/recorder.ts";
import type { UsageMeter } from "../usage/meter.ts";
import type { ProcessIdentity } from "../../system/process.ts";

/**
 * A session's place on this node: its agent process, and the turn that process is in.
 *
 * Starting (no agent yet) → prompting (agent and recorder) → idle (agent only) → prompting …
 * → ending. A place is removed when its process has ended; the session stays.
 */
export interface Place {
  readonly session: SessionRecord;
  readonly hold: Hold;
  /** What its writes are fenced with. */
  readonly fence: ProcessFence;
  agent: LiveAgent | null;
  recorder: Recorder | null;
  /** The turn under way, for whoever must wait for it. */
  task: Promise<void> | null;
  /** The start under way. */
  starting: Promise<unknown> | null;
  /** Its end under way, or done; asked for twice, it happens once. */
  ending: Promise<void> | null;
  /** The session was ended, or the daemon stops: nothing new starts here. */
  isEnding: boolean;
  /** The running turn is being stopped. */
  isStopping: boolean;
  /** Messages on their way into the running turn. */
  steering: Promise<void> | null;
  /** Its plan was sent back: a turn that the agent ends for that is a turn like any other. */
  isPlanSentBack: boolean;
  /** Why the running turn is being stopped: a budget, with its numbers, or silence. */
  overLimit: { readonly reason: string; readonly kind: "budget" | "silence" } | null;
  /** Meters the running turn from the agent's own file. */
  usageMeter: UsageMeter | null;
  /** A turn is being claimed for it: neither idleness nor an exit may take it away now. */
  isClaimed: boolean;
  /** What it started in its last turn goes on outside of it. */
  hasBackground: boolean;
  idleSince: number | null;
  idleTimer: NodeJS.Timeout | null;
  left: readonly ProcessIdentity[];
  /** What its agent has asked and nobody has answered yet. */
  readonly requests: OpenRequests;
}

/** What the parts of the runner share. Everything durable is in the store; this is only who is here. */
export interface Runtime {
  readonly deps: EngineDeps;
  readonly places: Map<string, Place>;
  /** What each agent can do, as it was last found. */
  agents: ReadonlyMap<string, Agent>;
  /** Looks for sessions that may start. */
  readonly fill: () => void;
  isStopping: boolean;
  /** Nothing is claimed before what was cut has been taken up, or while the node's lease is lost. */
  isHalted: boolean;
}

export function newPlace(session: SessionRecord, hold: Hold): Place {
  return {
    session,
    hold,
    fence: { session: session.id, fence: hold.fence },
    agent: null,
    recorder: null,
    task: null,
    starting: null,
    ending: null,
    isEnding: false,
    isStopping: false,
    steering: null,
    overLimit: null,
    usageMeter: null,
    isClaimed: false,
    hasBackground: false,
    isPlanSentBack: false,
    idleSince: null,
    idleTimer: null,
    left: [],
    requests: new OpenRequests(),
  };
}
