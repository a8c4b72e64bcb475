import { folded } from "../text/fence.ts";

/** An error between an agent and its model's provider, classified by the vendor's wording. */
export interface ProviderError {
  readonly kind: ProviderErrorKind;
  /** The vendor's message, without repetition and without the JSON around it. */
  readonly sentence: string;
}

/** `overloaded`, `failing`, `cut`: temporary. `signed_out` needs a person, `refused` a different request. */
export type ProviderErrorKind = "overloaded" | "failing" | "cut" | "signed_out" | "refused" | "other";

/** `status`: the HTTP status, if the agent reports it separately from the text. */
export function providerError(said: string, status: number | null = null): ProviderError {
  const text = folded(said.slice(0, READ_MAX));
  return { kind: kindOf(text, status ?? statusIn(text)), sentence: sentenceOf(text) };
}

export function isPassing({ kind }: ProviderError): boolean {
  return kind === "overloaded" || kind === "failing" || kind === "cut";
}

/** Returns the reason for a failed turn, without a full stop. */
export function providerReason(
  error: ProviderError,
  agent: { readonly title: string; readonly howToSignIn: string | null },
): string {
  const quoted = `"${error.sentence}"`;
  switch (error.kind) {
    case "overloaded":
      return `its provider is overloaded: ${quoted}`;
    case "failing":
      return `its provider failed: ${quoted}`;
    case "cut":
      return `the connection to its provider was cut: ${quoted}`;
    case "signed_out": {
      const how =
        agent.howToSignIn === null ? "only the user can sign in" : `to sign in, ${agent.howToSignIn}`;
      return `not signed in to ${agent.title} (${quoted}); ${how}`;
    }
    default:
      return `the agent reported: ${quoted}`;
  }
}

/** Exponential back-off with jitter. */
export function retryPauseMs(retry: number, first: { readonly ms: number; readonly chance: number }): number {
  return Math.round(first.ms * 2 ** (retry - 1) * (1 + first.chance / 4));
}

const READ_MAX = 8_000;

function kindOf(text: string, status: number | null): ProviderErrorKind {
  if (status === 401 || SIGNED_OUT.test(text)) return "signed_out";
  if (REFUSED.test(text)) return "refused";
  if (status === 429 || status === 529 || status === 503 || OVERLOADED.test(text)) return "overloaded";
  if (status === 408 || CUT.test(text)) return "cut";
  if (status !== null) return status >= 500 ? "failing" : "refused";
  return FAILING.test(text) ? "failing" : "other";
}

const any = (...words: readonly string[]): RegExp => new RegExp(words.join("|"), "i");

const SIGNED_OUT = any(
  String.raw`\bauthentication (?:required|failed|error)\b`,
  String.raw`\bfailed to authenticate\b`,
  String.raw`\bauthentication_error\b`,
  String.raw`\binvalid (?:x-)?api[ -]key\b`,
  String.raw`\bapi key not valid\b`,
  String.raw`\bincorrect api key\b`,
  String.raw`\bnot (?:logged|signed) in\b`,
  String.raw`\bplease run /login\b`,
  String.raw`\b(?:oauth |access |refresh )?token (?:has )?(?:expired|been revoked)\b`,
  String.raw`\b401 unauthorized\b`,
);
/** Waiting does not help against these errors, whatever their HTTP status. */
const REFUSED = any(
  String.raw`\bprompt is too long\b`,
  String.raw`\bcredit balance is too low\b`,
  String.raw`\bcontext (?:length|window) (?:was |is )?exceed`,
  String.raw`\binsufficient_quota\b`,
  String.raw`\binvalid_request_error\b`,
);
const OVERLOADED = any(
  String.raw`\boverloaded(?:_error)?\b`,
  String.raw`\bat capacity\b`,
  String.raw`\bhigh demand\b`,
  String.raw`\btoo many requests\b`,
  String.raw`\brate limit\b`,
  String.raw`\bresource.?exhausted\b`,
);
const FAILING = any(
  String.raw`\binternal server error\b`,
  String.raw`\bbad gateway\b`,
  String.raw`\bgateway time-?out\b`,
  String.raw`\bservice (?:is )?(?:temporarily )?unavailable\b`,
);
const CUT = any(
  String.raw`\bstream (?:disconnected|closed|ended)\b`,
  String.raw`\bconnection (?:error|closed|dropped|reset|refused|aborted|lost)\b`,
  String.raw`\b(?:ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)\b`,
  String.raw`\bsocket hang up\b`,
  String.raw`\bfetch failed\b`,
  String.raw`\bpremature close\b`,
  String.raw`\berror sending request\b`,
  String.raw`\b(?:request|connection|stream|idle) timed out\b`,
  String.raw`\bnetwork error\b`,
  String.raw`\bincomplete (?:json|response|stream)\b`,
);

/** Finds the status in "API Error: 529 …", "last status: 429 …", "got status: 503", `"code":401`. */
function statusIn(text: string): number | null {
  const found = STATUS.exec(text)?.[1];
  return found === undefined ? null : Number(found);
}

const STATUS = /\b(?:error|status|code|repeated|rejected|http)\b["':( ]{0,4}([45]\d\d)\b/i;

/** Joins the words before the JSON and the message inside it, without repetition. */
function sentenceOf(text: string): string {
  const from = text.indexOf("{");
  const before = (from < 0 ? text : text.slice(0, from))
    .replace(/^Internal error: /i, "")
    .replace(/[:\s]+$/, "");
  const inside = from < 0 ? null : messageIn(text.slice(from), DEPTH_MAX);
  const sentence = inside === null || before.includes(inside) ? before || text : joined(before, inside);
  return sentence.trim();
}

function joined(before: string, inside: string): string {
  return before === "" || inside.includes(before) ? inside : `${before}: ${inside}`;
}

const DEPTH_MAX = 4;

/** Returns the innermost message, because vendors nest one error's JSON in the message of another. */
function messageIn(text: string, depth: number): string | null {
  const message = messageOf(parsed(text)) ?? quotedMessage(text);
  if (message === null || message === "") return null;
  const at = message.indexOf("{");
  const inner = at < 0 || depth <= 1 ? null : messageIn(message.slice(at), depth - 1);
  return inner ?? message.trim();
}

function parsed(text: string): unknown {
  const end = text.lastIndexOf("}");
  try {
    return JSON.parse(text.slice(0, end + 1));
  } catch {
    // The text is cut or not JSON: the caller looks for the message in the text.
    return null;
  }
}

function messageOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return null;
  const fields = value as Readonly<Record<string, unknown>>;
  return messageOf(fields["error"] ?? fields["message"] ?? fields["detail"] ?? null);
}

function quotedMessage(text: string): string | null {
  const found = /"message" ?: ?"((?:[^"\\]|\\.){1,2000})/.exec(text)?.[1];
  return found === undefined ? null : found.replaceAll(/\\(["\\/])/g, "$1").replaceAll(String.raw`\n`, " ");
}
