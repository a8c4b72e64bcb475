import type { z } from "zod";
import { ACT } from "./act.ts";
import { DAEMON } from "./daemon.ts";
import { HISTORY } from "./history.ts";
import { READ } from "./read.ts";
import { TRIGGER } from "./trigger.ts";

export { Health } from "./daemon.ts";
export type { OperationSpec } from "./spec.ts";

/** All surfaces are generated from this table: HTTP, MCP, CLI, client, OpenAPI and the reference. */
export const OPERATIONS = { ...DAEMON, ...READ, ...ACT, ...TRIGGER, ...HISTORY } as const;

export type OperationName = keyof typeof OPERATIONS;
export type InputOf<N extends OperationName> = z.output<(typeof OPERATIONS)[N]["input"]>;
export type AskOf<N extends OperationName> = z.input<(typeof OPERATIONS)[N]["input"]>;
export type OutputOf<N extends OperationName> = z.output<(typeof OPERATIONS)[N]["output"]>;
