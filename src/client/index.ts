export { connect } from "./connect.ts";
export type { CallOptions, Client, Connection, HttpOperationName } from "./connect.ts";
export type { EventsOptions, FeedItem } from "./events.ts";
export { Unreachable } from "./request.ts";
export { isPassing, type WaitForOptions } from "./wait-for.ts";
