import { newScan } from "../../lines/folder.ts";
import type { HistoryReader } from "../../port.ts";
import { discover, FORMAT, roots } from "./layout.ts";
import { listsHolders, readLive } from "./live.ts";
import { glance, readBatches, tail } from "./read.ts";

export const opencode: HistoryReader = {
  format: FORMAT,
  agent: "opencode",
  roots,
  discover: (root, onProblem) => discover(newScan(FORMAT, root, onProblem)),
  read: readBatches,
  glance,
  tail,
  live: readLive,
  listsLive: ({ agentVersion }) => listsHolders(agentVersion),
};
