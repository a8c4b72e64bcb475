import type { HistoryScan } from "../contract/index.ts";

export function newScan(of: Pick<HistoryScan, "enabled" | "phase" | "exclude">): HistoryScan {
  return {
    ...of,
    error: null,
    startedAt: null,
    listedAt: null,
    readAt: null,
    files: 0,
    filesRead: 0,
    bytes: 0,
    bytesRead: 0,
    excluded: 0,
    found: [],
    problemCount: 0,
  };
}
