import { MARK } from "./shape.ts";

/**
 * How strongly a name suggests a secret. `secret`: any value is one. `key`: only a value that looks like one,
 * because code has tokens and keys of many other kinds. `maybe`: only a value that looks like nothing else,
 * because the name has other meanings too (`pass: 12`, `pwd`, `API_TOKENS`).
 */
export interface Named {
  readonly sure: "secret" | "key" | "maybe";
  readonly kind: string;
}

const WORDS = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g;
const NAME_MAX = 96;

/** Words that mean a secret as the last word of a name or as the whole name. */
const SECRET = /^(?:password|passwd|passphrase|passcode|mnemonic)$/;
/** Words that mean a secret only after another word: `DB_PASS`, `mysql_pwd`. */
const SECRET_BEHIND = /^(?:pass|pwd|pw)$/;
const RUN_TOGETHER = /^(?:[a-z]{2,20})(?:password|passwd|passphrase)$|^(?:sshpass|mysqlpwd|userpass|dbpass)$/;
const TOKEN_RUN_TOGETHER =
  /^(?:auth|access|refresh|id|api|bot|session|bearer|csrf|xsrf|security|github|gh|npm|user|app|deploy|push|device|secret)token$/;
const KEY_RUN_TOGETHER = /^(?:api|access|secret|private|account|encryption|signing|sharedaccess|auth)key$/;
const SECRET_RUN_TOGETHER = /^(?:client|app|api|consumer|shared|webhook|auth|jwt|user)secret$/;
/** Kinds of tokens that give no access. */
const HARMLESS_TOKEN =
  /^(?:page|next|prev|previous|continuation|cancel|cancellation|end|start|first|last|stop|eos|bos|eot|pad|unk|mask|sep|cls|special|per|each|input|output|prompt|completion|current|peek|syntax|lexer|parser|abort)$/;
/** Words that, before "key", mean a key that gives access. */
const KEY_OPENS =
  /^(?:api|access|secret|private|encryption|encrypt|decryption|signing|sign|auth|account|master|service|deploy|shared|admin|webhook|storage|subscription|management|consumer|application|hmac|aes|jwt|license|root|client|server|app|ssh|gpg|rsa|ingest|license|write|read|integration|developer|publish)$/;
const KEY_HARMLESS =
  /^(?:public|publishable|primary|foreign|cache|sort|partition|index|hot|arrow|group|object|row|map|unique|composite|lookup|registry|idempotency|dedup|dedupe|known|host|translation|i18n|locale|config|setting|storage|query|react|list|item|data|json|shortcut|modifier|any|press|enter|escape|delete|up|down|left|right|s3|file|path|bucket|feature|flag|env|ref|tree|event|message|trigger|callback|delivery|caller|hash|topic|routing|record|shard|hkey)$/;

/** Cache for short names, because the same few recur in every entry. */
const known = new Map<string, Named | null>();
const KNOWN_MAX = 2_000;
const KNOWN_NAME_MAX = 24;

export function nameSays(name: string): Named | null {
  if (name.length > NAME_MAX) return null;
  if (name.length > KNOWN_NAME_MAX) return meaningOf(name);
  if (known.size > KNOWN_MAX) known.clear();
  const found = known.get(name);
  if (found !== undefined) return found;
  const meaning = meaningOf(name);
  known.set(name, meaning);
  return meaning;
}

function meaningOf(name: string): Named | null {
  const isLoud = name === name.toUpperCase();
  const words = (name.match(WORDS) ?? []).map((word) => word.toLowerCase());
  const last = words.at(-1);
  // `no-password` is a rule about passwords.
  if (last === undefined || words.includes("no")) return null;
  return wordsSay(words, isLoud) ?? oneOfSeveral(words, isLoud);
}

/** Suffixes that only distinguish several secrets: `DB_PASSWORD_PROD`, `TOKEN_2`, `SECRET_KEY_BASE`. */
const WHICH =
  /^(?:\d+|v|prod|production|dev|development|staging|stage|stg|test|testing|qa|uat|local|live|sandbox|demo|base|new|old|current|previous|prev|primary|secondary|backup|ro|rw)$/;
const PLURAL = /^(?:passwords|tokens|keys|secrets|apikeys)$/;

function oneOfSeveral(words: readonly string[], isLoud: boolean): Named | null {
  let count = words.length;
  while (count > 1 && WHICH.test(words[count - 1] as string)) count -= 1;
  const last = words[count - 1] as string;
  if (PLURAL.test(last)) {
    const before = words[count - 2];
    const isMeant = isLoud || (before !== undefined && KEY_OPENS.test(before));
    const one = isMeant ? wordsSay([...words.slice(0, count - 1), last.slice(0, -1)], isLoud) : null;
    return one === null ? null : { ...one, sure: "maybe" };
  }
  const says = count === words.length ? null : wordsSay(words.slice(0, count), isLoud);
  return says === null || isLoud ? says : { ...says, sure: "maybe" };
}

function wordsSay(words: readonly string[], isLoud: boolean): Named | null {
  const last = words.at(-1) as string;
  const before = words.at(-2);
  if (SECRET.test(last) || RUN_TOGETHER.test(last)) return { sure: "secret", kind: "password" };
  if (SECRET_BEHIND.test(last)) {
    if (before === "old") return null;
    return { sure: before === undefined ? "maybe" : "secret", kind: "password" };
  }
  if (last === "secret" || SECRET_RUN_TOGETHER.test(last)) return { sure: "secret", kind: "secret" };
  if (TOKEN_RUN_TOGETHER.test(last)) return { sure: "key", kind: "token" };
  if (last === "token") {
    return before !== undefined && HARMLESS_TOKEN.test(before) ? null : { sure: "key", kind: "token" };
  }
  if (KEY_RUN_TOGETHER.test(last)) return { sure: "key", kind: "key" };
  if (last === "key" && before !== undefined) {
    const opens = isLoud ? !KEY_HARMLESS.test(before) : KEY_OPENS.test(before);
    return opens ? { sure: words.includes("secret") ? "secret" : "key", kind: "key" } : null;
  }
  // The name of a private key in a kubeconfig file.
  if (last === "data" && before === "key" && words.at(-3) === "client")
    return { sure: "key", kind: "private key" };
  if (/^(?:credential|credentials|auth|authorization|jwt|pat)$/.test(last))
    return { sure: "key", kind: "credential" };
  return null;
}

/** Placeholders for a value and references to one; neither is a secret. */
const PLACEHOLDER =
  /^(?:\*+|x{3,}|\.{2,}|…+|•+|-+|_+|\?+|\[[^\]]*\]?|<[^>]*>?|\{.*|%[\w()]*%?[sdv]?|\$[A-Za-z_]\w*|\$[{(].*|#\{.*|!\w+ .*|your[-_ ].*|my[-_](?:api|secret|token|password|key)[-_a-z]*|(?:op|vault|env|file|ref|secret|ssm|arn):.*|changeme|redacted|hidden|masked|example|placeholder|todo|none|null|nil|undefined|true|false)$/i;
/** `$ecret12345` is a password: the names of variables do not have that many digits. */
const DOLLAR_WORD = /^\$(?=\w{0,64}[a-z])[A-Za-z_]{1,64}(?:\d{4}|\d{1,3}[A-Za-z]{1,64}\d)\w*$/;
const TYPE =
  /^(?:string|number|boolean|bool|str|int|integer|float|any|unknown|never|void|object|bytes|text|char|varchar|uuid|date|none|null|nil|undefined|true|false|yes|no|on|off|required|optional|empty|default|plain|hidden|masked|secret|password|passwd|pass|pwd|token|key|self|this|value|data|input|string\[\]|symbol|bigint|function|required\w*)$/i;
const REFERENCE =
  /^(?:process\.env|import\.meta|os\.environ|Deno\.env|ENV|env|this|self|config|secrets|vars|var|local|data|props|opts|options|args|req|request|res|response|ctx|context|state|params|event|user|settings)\b[.?[]/;
const CALL = /^[A-Za-z_$][\w$]*(?:!?(?:\?\.|\.|::|->)[A-Za-z_$][\w$]*)*!?\s?[(<[`]/;
const PATTERN = /^\/(?:[\^([\\]|[gimsuy]*\.test\()/;
const MEMBER = /^[A-Za-z_$][\w$]*(?:!?(?:\?\.|\.|::|->)[A-Za-z_$][\w$]*)+[!;,]?$/;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const PATH = /^(?:~|\.{1,2})?(?:\/[\w.@+-]{1,40}){1,16}\/?$/;
const ADDRESS = /^[a-z][a-z0-9+.-]{1,20}:\/\//i;
const PROSE =
  /(?:^|[\s"'])(?:passwords?|passphrase|secrets?|tokens?|keys?|required|your|invalid|please|the|is|are|of|for|and|not|with|cannot)(?=$|[\s"'.,:!?])/i;

/** Longer values are never treated as code; this bounds the cost per name. */
const CODE_MAX = 256;

export function isPlaceholder(value: string): boolean {
  const text = value.trim();
  return text === "" || (text.length <= CODE_MAX && PLACEHOLDER.test(text) && !DOLLAR_WORD.test(text));
}

export interface ValueContext {
  readonly quoted: boolean;
  /** The value is in syntax that is never code: an environment, an address's query, a flag, a header. */
  readonly spelled: boolean;
  readonly next: "end" | "word" | "code";
}

export function isSecretValue(named: Named, value: string, context: ValueContext): boolean {
  const text = (value.includes("[redacted: ") ? value.replaceAll(MARK, "") : value).trim();
  if (text.length < 3 || isPlaceholder(text)) return false;
  if (text.length > CODE_MAX) return named.sure === "secret" || !/\s/.test(text);
  if (TYPE.test(text) || ADDRESS.test(text) || isWordyPath(text)) return false;
  if (context.quoted ? /\$\{|\{\{/.test(text) : isCode(text, context)) return false;
  if (/\s/.test(text)) return named.sure === "secret" && context.quoted && !PROSE.test(text);
  if (named.sure === "maybe") return isUnlikeAnyWord(text, named.kind === "password" ? 7 : 8);
  if (context.spelled) return named.sure === "secret" || text.length >= (named.kind === "signature" ? 16 : 6);
  if (named.sure === "key") return looksLikeKey(text, named.kind === "credential" ? 16 : 8);
  if (context.quoted) return true;
  if (/^[A-Za-z]+$/.test(text)) {
    const isWord = context.next === "end" && named.kind === "password" && !/^[A-Z][a-z]/.test(text);
    return isWord || looksLikeKey(text, 20);
  }
  return text.length >= (context.next === "word" ? 6 : 4);
}

function isCode(text: string, context: ValueContext): boolean {
  if (PATTERN.test(text) || (CALL.test(text) && !/\)[A-Za-z0-9]/.test(text))) return true;
  const isReference = REFERENCE.test(text);
  // In syntax that is never code, `env.Xk9vQ2mZ7` is a value.
  if (context.spelled) return isReference && !isDrawn(text.split(/[.?[]/).at(-1) as string, 8);
  if (isReference) return true;
  if (MEMBER.test(text) || /^[({[`]|=>|\|\||&&|^!|[|&]$/.test(text)) return true;
  return IDENTIFIER.test(text) && !/\d/.test(text) && (context.next === "code" || isIdentifier(text));
}

/** `authToken`, `new_password`: an identifier of two or more words, which nobody chooses as a secret. */
function isIdentifier(text: string): boolean {
  return /[a-z]_[a-z]|[a-z][A-Z][a-z]/.test(text) && isWords(text);
}

/** A path made of words; a base64 key may look like a path, but its parts are not words. */
function isWordyPath(text: string): boolean {
  if (!PATH.test(text)) return false;
  const parts = text.split("/");
  return !parts.some((part) => isDrawn(part, 12)) && parts.filter((part) => isDrawn(part, 4)).length < 2;
}

/** Whether a part looks random: long enough, in mixed case, and either with a digit or not made of words. */
function isDrawn(part: string, lengthMin: number): boolean {
  const isMixed = part.length >= lengthMin && /[a-z]/.test(part) && /[A-Z]/.test(part);
  return isMixed && (/\d/.test(part) || !isWords(part));
}

/**
 * Whether a text mixes letters and digits, is a long number, or is long, in mixed case and not made of words.
 */
export function looksLikeKey(text: string, lengthMin: number): boolean {
  if (text.length < lengthMin) return false;
  if (/\d/.test(text) && /[A-Za-z]/.test(text)) return true;
  if (/^\d+$/.test(text)) return text.length >= 12;
  return text.length >= 20 && /[a-z]/.test(text) && /[A-Z]/.test(text) && !isWords(text);
}

/** Whether a text mixes letters and digits and is not a path, a file name, a time or a size. */
function isUnlikeAnyWord(text: string, lengthMin: number): boolean {
  if (text.length < lengthMin || !hasFigure(text)) return false;
  return !/[/\\]|^[\d.]+[a-z]{0,5}$|\.[a-z]{1,5}$/i.test(text);
}

/** `SomeLongNameOfAThing` is made of words: its capital letters begin them. */
function isWords(text: string): boolean {
  const words = text.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? [];
  return text.length / words.length >= 3.5;
}

export function hasFigure(text: string): boolean {
  return /\d/.test(text) && /[A-Za-z]/.test(text);
}
