/**
 * Every refusal code with its HTTP status and meaning. `docs/reference/refusals.md` is generated from this.
 */
export const REFUSALS = {
  invalid_input: [400, "A field is missing, of the wrong type, unknown or out of range."],
  malformed_json: [400, "The body is not JSON."],
  unsupported_media_type: [415, "The body must be sent as application/json."],
  unauthorized: [401, "No token, or one that is not valid."],
  forbidden: [403, "The token is valid but does not reach this."],
  host_refused: [403, "The Host or Origin header is not one this daemon answers to."],
  caller_is_agent: [403, "A person's token was presented by a process that an agent of ours started."],
  not_found: [404, "No such session, turn, message or address."],
  ambiguous_reference: [409, "A short id or name fits more than one session."],
  method_not_allowed: [405, "The address exists, but not with this method."],
  body_too_large: [413, "The body is larger than the daemon accepts."],
  prompt_too_large: [413, "The prompt is longer than the limit."],
  empty_prompt: [400, "A prompt needs at least one character that is not white space."],
  session_ended: [409, "The session has ended and takes no more messages."],
  parent_ended: [409, "The session that would be the parent has ended."],
  unknown_agent: [400, "No agent of this name is known."],
  agent_not_installed: [409, "The agent is known but not installed on this machine."],
  unknown_profile: [400, "No profile of this name is known."],
  cwd_not_found: [400, "The folder does not exist or is not a folder."],
  cwd_not_allowed: [403, "The folder is not one a session may work in."],
  permission_too_wide: [403, "A child may not be allowed more than its parent."],
  cannot_enforce: [403, "Nothing would hold the agent to what the child may do."],
  tool_not_given: [403, "The session's profile or parent keeps this tool from it."],
  cannot_meter: [409, "The budget cannot be kept: the agent does not report what it would count."],
  cannot_fork: [409, "The parent's conversation cannot be forked: the agent cannot, or there is none."],
  inherit_off: [409, "The configuration lets no child inherit its parent's context."],
  over_budget: [409, "More than what is left was asked for."],
  unknown_model: [404, "The agent has no model of this name."],
  untrusted_project: [403, "The project's own files are not used until a person trusts them."],
  bad_project_file: [409, "The project's kinfold.yaml cannot be used, so its ceiling is not known."],
  limit_depth: [409, "The tree is as deep as it may be."],
  limit_children: [409, "The parent has as many open children as it may have."],
  limit_sessions: [409, "The tree has as many open sessions as it may have."],
  limit_rate: [429, "The tree has spawned as often this minute as it may."],
  limit_spawns: [409, "The tree has spawned as often in its life as it may."],
  limit_requests: [409, "The session has as many unanswered questions and requests as it may have."],
  key_reused: [409, "The key was used before with another input."],
  bad_query: [400, "The search cannot be read, or says nothing to search for."],
  search_too_long: [408, "The search took longer than it may; it must be narrowed."],
  bad_template: [400, "The callback template cannot be read."],
  wait_on_ancestor: [409, "A session may not wait for itself or one above it."],
  not_a_child: [403, "The session is not below the caller."],
  waits_on_trigger: [409, "The session waits for an answer; answer its question instead."],
  unknown_trigger: [404, "No trigger of this id is known to the caller."],
  already_answered: [409, "The trigger has been answered, has fallen to its default, or was withdrawn."],
  bad_answer: [400, "The answer does not fit the trigger's type."],
  may_not_allow: [403, "A session may allow only what it may itself do unasked."],
  did_not_complete: [408, "The session did not complete within the time the caller gave."],
  child_failed: [409, "The session that was waited for failed."],
  feed_reset: [410, "The cursor is of another epoch or too old; take a snapshot and start anew."],
  not_available: [409, "This is not available in this version or on this store."],
  busy: [
    503,
    "The daemon has as much to do as it can take; nothing was changed. Ask again after Retry-After.",
  ],
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
