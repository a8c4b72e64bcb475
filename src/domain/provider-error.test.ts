import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  isPassing,
  providerError,
  type ProviderErrorKind,
  providerReason,
  retryPauseMs,
} from "./provider-error.ts";

interface Row {
  readonly from: string;
  readonly said: string;
  readonly status?: number;
  readonly kind: ProviderErrorKind;
  readonly sentence: string;
}

/** Errors that pinned versions of the vendors' programs reported when `test/agents` scripted their model. */
const HEARD: readonly Row[] = [
  {
    from: "Claude Code 2.1.325, 401",
    said: "Authentication required",
    kind: "signed_out",
    sentence: "Authentication required",
  },
  {
    from: "Claude Code 2.1.325, 529",
    said: "Internal error: API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment.",
    kind: "overloaded",
    sentence:
      "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment.",
  },
  {
    from: "Codex 0.166.0, 429",
    said: "exceeded retry limit, last status: 429 Too Many Requests\n\n",
    kind: "overloaded",
    sentence: "exceeded retry limit, last status: 429 Too Many Requests",
  },
  {
    from: "Gemini CLI 0.61.0, 401",
    said: '{"error":{"code":401,"status":"INTERNAL","message":"invalid x-api-key"}}',
    status: 401,
    kind: "signed_out",
    sentence: "invalid x-api-key",
  },
  {
    from: "Gemini CLI 0.61.0, 429",
    said: "Number of requests has exceeded your rate limit",
    status: 429,
    kind: "overloaded",
    sentence: "Number of requests has exceeded your rate limit",
  },
  {
    from: "Claude Code 2.1.325, 429",
    said: "Internal error: API Error: Request rejected (429) · Number of requests has exceeded your rate limit",
    kind: "overloaded",
    sentence: "API Error: Request rejected (429) · Number of requests has exceeded your rate limit",
  },
  {
    from: "Claude Code 2.1.325, 500",
    said: "Internal error: API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.",
    kind: "failing",
    sentence:
      "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.",
  },
  {
    from: "Claude Code 2.1.325, cut",
    said: "Internal error: API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL, then try again.",
    kind: "cut",
    sentence:
      "API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL, then try again.",
  },
  {
    from: "Claude Code 2.1.325, 400",
    said: "Internal error: Prompt is too long · the request is ~250000 tokens (limit 200000)",
    kind: "refused",
    sentence: "Prompt is too long · the request is ~250000 tokens (limit 200000)",
  },
  {
    from: "Codex 0.166.0, 500",
    said: "We’re currently experiencing high demand, which may cause temporary errors.\n\n",
    kind: "overloaded",
    sentence: "We’re currently experiencing high demand, which may cause temporary errors.",
  },
  {
    from: "Codex 0.166.0, cut",
    said: "stream disconnected before completion: error sending request\n\n",
    kind: "cut",
    sentence: "stream disconnected before completion: error sending request",
  },
  {
    from: "Codex 0.166.0, 400",
    said: '{"error":{"type":"invalid_request_error","code":null,"message":"prompt is too long: 250000 tokens > 200000 maximum"}}\n\n',
    kind: "refused",
    sentence: "prompt is too long: 250000 tokens > 200000 maximum",
  },
  {
    from: "Gemini CLI 0.61.0, 500",
    said: '{"error":{"code":500,"status":"INTERNAL","message":"Internal server error"}}',
    status: 500,
    kind: "failing",
    sentence: "Internal server error",
  },
  {
    from: "Gemini CLI 0.61.0, cut",
    said: "exception TypeError: fetch failed sending request",
    status: 500,
    kind: "cut",
    sentence: "exception TypeError: fetch failed sending request",
  },
  {
    from: "Gemini CLI 0.61.0, 400",
    said: '{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"prompt is too long: 250000 tokens > 200000 maximum"}}',
    status: 400,
    kind: "refused",
    sentence: "prompt is too long: 250000 tokens > 200000 maximum",
  },
];

/** Errors quoted from the vendors' source code, issue trackers and documentation. */
const READ: readonly Row[] = [
  {
    from: "Claude Code",
    said: 'API Error: 500 {"type":"error","error":{"type":"api_error","message":"Internal server error"},"request_id":"req_1"}',
    kind: "failing",
    sentence: "API Error: 500: Internal server error",
  },
  {
    from: "Claude Code",
    said: 'API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}} · Please run /login',
    kind: "signed_out",
    sentence: "API Error: 401: OAuth token has expired.",
  },
  {
    from: "Claude Code",
    said: "Invalid API key · Please run /login",
    kind: "signed_out",
    sentence: "Invalid API key · Please run /login",
  },
  {
    from: "Claude Code",
    said: "API Error: Connection error.",
    kind: "cut",
    sentence: "API Error: Connection error.",
  },
  { from: "Claude Code", said: "Prompt is too long", kind: "refused", sentence: "Prompt is too long" },
  {
    from: "Claude Code",
    said: "Credit balance is too low",
    kind: "refused",
    sentence: "Credit balance is too low",
  },
  {
    from: "Codex",
    said: "stream disconnected before completion: error sending request for url (https://api.example.com/v1/responses)",
    kind: "cut",
    sentence:
      "stream disconnected before completion: error sending request for url (https://api.example.com/v1/responses)",
  },
  {
    from: "Codex",
    said: 'unexpected status 400 Bad Request: {"error":{"message":"Unsupported value: model","type":"invalid_request_error"}}',
    kind: "refused",
    sentence: "unexpected status 400 Bad Request: Unsupported value: model",
  },
  {
    from: "Gemini CLI, one error inside another",
    said: String.raw`{"error":{"message":"{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"The model is overloaded. Please try again later.\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n","code":503,"status":"Service Unavailable"}}`,
    kind: "overloaded",
    sentence: "The model is overloaded. Please try again later.",
  },
  {
    from: "JSON that was cut",
    said: '{"error":{"code":500,"message":"It said \\"no\\"","details":[{"x":"',
    kind: "failing",
    sentence: 'It said "no"',
  },
  {
    from: "an agent with another trouble",
    said: "the tool server did not start",
    kind: "other",
    sentence: "the tool server did not start",
  },
  {
    from: "an agent that names a line, not a status",
    said: "failed in file.ts, line 500 of 529",
    kind: "other",
    sentence: "failed in file.ts, line 500 of 529",
  },
];

describe("an error of a provider is known by the words of", () => {
  for (const { from, said, status, kind, sentence } of [...HEARD, ...READ]) {
    it(`${from}: ${said.slice(0, 60).trim()}`, () => {
      assert.deepEqual(providerError(said, status ?? null), { kind, sentence });
    });
  }
});

it("overload, failures and cut connections pass by themselves; nothing else does", () => {
  const passing = (["overloaded", "failing", "cut", "signed_out", "refused", "other"] as const).filter(
    (kind) => isPassing({ kind, sentence: "" }),
  );
  assert.deepEqual(passing, ["overloaded", "failing", "cut"]);
});

it("somebody who is not signed in is told how to sign in", () => {
  const error = providerError("Authentication required");
  assert.equal(
    providerReason(error, { title: "Codex", howToSignIn: "run: codex login" }),
    'not signed in to Codex ("Authentication required"); to sign in, run: codex login',
  );
});

it("the pause before a retry doubles each time", () => {
  const pauses = [1, 2, 3, 4].map((retry) => retryPauseMs(retry, { ms: 30_000, chance: 0 }));
  assert.deepEqual(pauses, [30_000, 60_000, 120_000, 240_000]);
  assert.equal(retryPauseMs(1, { ms: 1_000, chance: 1 }), 1_250);
});
