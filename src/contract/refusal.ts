/** Every refusal code with its HTTP status and meaning; the source of `docs/reference/refusals.md`. */
export const REFUSALS = {
  invalid_input: [400, "A field is missing, of the wrong type, unknown or out of range."],
  malformed_json: [400, "The body is not JSON."],
  unsupported_media_type: [415, "The body must be sent as application/json."],
  unauthorized: [401, "The token is missing or not valid."],
  forbidden: [403, "The token is valid, but its rights do not include this."],
  host_refused: [403, "The daemon does not accept this Host or Origin header."],
  caller_is_agent: [403, "A process that one of our agents started used a person's token."],
  not_found: [404, "There is no such session, turn, message or address."],
  ambiguous_reference: [409, "A short id or name matches more than one session."],
  method_not_allowed: [405, "The address exists, but not with this method."],
  body_too_large: [413, "The body is larger than the daemon accepts."],
  prompt_too_large: [413, "The prompt is longer than the limit."],
  empty_prompt: [400, "A prompt needs at least one character that is not white space."],
  session_ended: [409, "The session has ended and takes no more messages."],
  parent_ended: [409, "The session that would be the parent has ended."],
  unknown_agent: [400, "There is no agent with this name."],
  agent_not_installed: [409, "The agent is known but not installed on this machine."],
  unknown_profile: [400, "There is no profile with this name."],
  bad_profile: [409, "The profile's file has an error, so the profile cannot be used."],
  cwd_not_found: [400, "The folder does not exist or is not a folder."],
  cwd_not_allowed: [403, "Sessions may not work in this folder."],
  permission_too_wide: [403, "A child may not have more permission than its parent."],
  cannot_enforce: [403, "The agent cannot be restricted to what the child may do."],
  tool_not_given: [403, "The session's profile or parent withholds this tool."],
  cannot_meter: [409, "The budget cannot be enforced: the agent does not report the usage that it limits."],
  cannot_fork: [
    409,
    "The parent's conversation cannot be forked: the agent cannot fork, or there is no conversation yet.",
  ],
  inherit_off: [409, "The configuration does not let children inherit their parent's context."],
  over_budget: [409, "The request is for more than the budget has left."],
  unknown_model: [404, "The agent has no model with this name."],
  untrusted_project: [403, "The project's own files are not used until a person trusts them."],
  bad_project_file: [409, "The project's kinfold.yaml cannot be read, so its limits are unknown."],
  limit_depth: [409, "The tree has reached its maximum depth."],
  limit_children: [409, "The parent has reached its limit of open children."],
  limit_sessions: [409, "The tree has reached its limit of open sessions."],
  limit_rate: [429, "The tree has reached its limit of spawns per minute."],
  limit_spawns: [409, "The tree has reached its limit of spawns in its lifetime."],
  limit_requests: [409, "The session has reached its limit of unanswered questions and requests."],
  key_reused: [409, "The idempotency key was used before with a different input."],
  bad_query: [400, "The search query cannot be parsed, or has nothing to search for."],
  search_too_long: [408, "The search took too long; narrow it."],
  bad_template: [400, "The callback template cannot be parsed."],
  wait_on_ancestor: [409, "A session may not wait for itself or an ancestor."],
  not_a_child: [403, "The session is not a descendant of the caller."],
  waits_on_trigger: [409, "The session is waiting for an answer; answer its question instead."],
  unknown_trigger: [404, "The caller has no trigger with this id."],
  already_answered: [409, "The trigger was already answered, resolved by its default, or withdrawn."],
  bad_answer: [400, "The answer does not fit the trigger's type."],
  may_not_allow: [403, "A session may allow only what it may do itself without asking."],
  did_not_complete: [408, "The session did not complete within the caller's timeout."],
  child_failed: [409, "The awaited session failed."],
  feed_reset: [410, "The cursor is too old or from another epoch; take a snapshot and start again."],
  not_available: [409, "This is not available in this version or on this store."],
  busy: [503, "The daemon is overloaded; nothing was changed. Retry after the time in Retry-After."],
  store_busy: [503, "The store could not take the write; nothing was changed."],
  disk_full: [507, "The disk is full; nothing was changed."],
  shutting_down: [503, "The daemon is shutting down; nothing was changed."],
  internal: [500, "A bug in Kinfold. Nothing was changed by this request; the log has the details."],
} as const satisfies Record<string, readonly [number, string]>;

export type RefusalCode = keyof typeof REFUSALS;

/** An expected "no". Its message says what was wrong, what is allowed and what to do next. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly details: Record<string, unknown>;

  constructor(code: RefusalCode, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.name = "Refusal";
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return REFUSALS[this.code][0];
  }
}
