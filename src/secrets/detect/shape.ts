/** A range of text to hide. `kind` names the secret; null for the mark of a secret that was hidden before. */
export interface Secret {
  readonly start: number;
  readonly end: number;
  readonly kind: string | null;
}

/** Marks of hidden secrets. Anyone can forge a mark, so the text after it is still searched for secrets. */
export const MARK = /\[redacted: [a-z0-9 .]{1,32}\]/g;

/** Text from the index `from` on may still become part of a secret when more text arrives. */
export class Tail {
  from = Infinity;

  hold(at: number): void {
    this.from = Math.min(this.from, at);
  }
}

/** Sorted ranges of one text that do not overlap. */
export class Spans {
  readonly all: readonly Secret[];

  constructor(found: readonly Secret[]) {
    const sorted = found.toSorted((a, b) => a.start - b.start || b.end - a.end);
    const apart: Secret[] = [];
    for (const each of sorted) {
      const last = apart.at(-1);
      if (last === undefined || each.start >= last.end) apart.push(each);
      else if (each.end > last.end) apart[apart.length - 1] = { ...last, end: each.end };
    }
    this.all = apart;
  }

  covering(place: number): Secret | null {
    const found = this.all[this.#firstBehind(place)];
    return found !== undefined && found.start <= place ? found : null;
  }

  /** If a value would end inside a range, `next` searches for the value's end again after that range. */
  past(valueEnd: number, next: (from: number) => number): number {
    let end = valueEnd;
    for (let over = this.covering(end); over !== null && over.start < end; over = this.covering(end)) {
      end = next(over.end);
    }
    return end;
  }

  within(start: number, end: number): readonly Secret[] {
    const first = this.#firstBehind(start);
    let last = first;
    while (last < this.all.length && (this.all[last] as Secret).start < end) last += 1;
    return this.all.slice(first, last);
  }

  #firstBehind(place: number): number {
    let low = 0;
    let high = this.all.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.all[middle] as Secret).end <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  has({ start, end }: { start: number; end: number }): boolean {
    const found = this.covering(start);
    return found !== null && found.start === start && found.end === end;
  }
}

/**
 * Shapes of vendors' keys. Each has a prefix that nobody writes by chance, or a distinctive length and
 * alphabet. A pattern may have one unbounded run, only at its end. So an attempt that fails ends after a few
 * characters, which keeps the search linear.
 */
const ANYWHERE: readonly (readonly [kind: string, pattern: string])[] = [
  ["google secret", String.raw`GOCSPX-[\w-]{16,}`],
  ["google token", String.raw`ya29\.[\w-]{16,}`],
  ["github token", String.raw`gh[opsur]_[A-Za-z0-9]{36}(?![A-Za-z0-9_])`],
  ["github token", String.raw`github_pat_\w{20,}`],
  ["gitlab token", String.raw`gl(?:pat|ptt|dt|rt|rtr|cbt|soat|ft|imt|agent|oas|ffct|wt)-[\w-]{16,}`],
  ["gitlab token", String.raw`GR1348941[\w-]{16,}`],
  ["slack token", String.raw`xox[abcdeoprs](?:\.xox[bp])?-[\w-]{10,}`],
  [
    "stripe key",
    String.raw`[rs]k_(?:live|test|prod)_(?=[a-z0-9]{0,64}[A-Z])(?=[A-Za-z]{0,64}\d)[A-Za-z0-9]{20,}`,
  ],
  ["webhook secret", String.raw`whsec_[A-Za-z0-9+/=]{16,}`],
  ["npm token", String.raw`npm_[A-Za-z0-9]{36,}`],
  ["pypi token", String.raw`pypi-Ag[\w-]{20,}`],
  ["rubygems key", String.raw`rubygems_[0-9a-f]{40,}`],
  ["hugging face token", String.raw`(?:hf|api_org)_[A-Za-z0-9]{30,}`],
  ["digitalocean token", String.raw`do[oprt]_v1_[0-9a-f]{40,}`],
  ["linear key", String.raw`lin_(?:api|oauth)_[A-Za-z0-9]{30,}`],
  ["notion token", String.raw`(?:ntn|secret)_[A-Za-z0-9]{40,}`],
  ["grafana token", String.raw`gl(?:c|sa)_[A-Za-z0-9+/=_]{32,}`],
  ["vault token", String.raw`hv[bsr]\.[\w-]{20,}`],
  ["doppler token", String.raw`dp\.(?:pt|st|sa|ct|scim|audit)\.[\w.-]{30,}`],
  ["shopify token", String.raw`shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}`],
  ["atlassian token", String.raw`AT[AC]TT3[\w=-]{50,}`],
  ["fly token", String.raw`fm[12][ar]?_[A-Za-z0-9+/=_-]{40,}`],
  ["heroku key", String.raw`HRKU-[\w-]{30,}`],
  ["netlify token", String.raw`nf[pcoub]_[A-Za-z0-9]{36,}`],
  ["supabase key", String.raw`sb(?:p_[0-9a-f]{40,}|_secret_[\w-]{20,})`],
  ["docker token", String.raw`dckr_(?:pat|oat)_[\w-]{20,}`],
  ["figma token", String.raw`figd_[\w-]{30,}`],
  ["postman key", String.raw`PMAK-[0-9a-f]{24}-[0-9a-f]{30,}`],
  ["sentry token", String.raw`sntry[su]_[A-Za-z0-9+/=_-]{40,}`],
  ["groq key", String.raw`gsk_[A-Za-z0-9]{40,}`],
  ["xai key", String.raw`xai-[A-Za-z0-9]{40,}`],
  ["perplexity key", String.raw`pplx-[A-Za-z0-9]{40,}`],
  ["tavily key", String.raw`tvly-[A-Za-z0-9-]{28,}`],
  ["langsmith key", String.raw`lsv2_(?:pt|sk)_[0-9a-f_]{32,}`],
  ["nvidia key", String.raw`nvapi-[\w-]{40,}`],
  ["pinecone key", String.raw`pcsk_\w{40,}`],
  ["buildkite token", String.raw`bkua_[0-9a-f]{40,}`],
  ["pulumi token", String.raw`pul-[0-9a-f]{40,}`],
  ["planetscale token", String.raw`pscale_(?:tkn|pw|oauth)_[\w.-]{30,}`],
  ["contentful token", String.raw`CFPAT-[\w-]{40,}`],
  ["tailscale key", String.raw`tskey-[a-z]{2,10}-[\w-]{16,}`],
  ["new relic key", String.raw`NR(?:AK|II|JS|BR)-[\w-]{20,}`],
  ["age key", String.raw`AGE-SECRET-KEY-1[A-Z0-9]{40,}`],
  ["square token", String.raw`sq0(?:atp|csp)-[\w-]{22,}`],
  ["slack webhook", String.raw`hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,}`],
  ["teams webhook", String.raw`IncomingWebhook/[A-Za-z0-9]{32}[\w/-]{0,160}`],
  ["telegram token", String.raw`(?<=/bot)\d{6,12}:[\w-]{30,}`],
  ["discord webhook", String.raw`discord(?:app)?\.com/api/webhooks/\d{6,24}/[\w-]{40,}`],
];

/** Requires a digit or mixed case within 64 characters: `sk_test_environment` has neither. */
const DRAWN = String.raw`(?=[A-Za-z_-]{0,64}\d|[a-z_-]{0,64}[A-Z][A-Z_-]{0,64}[a-z]|[A-Z][A-Z_-]{0,64}[a-z][a-z_-]{0,64}[A-Z])`;

/**
 * Prevents a match after a lower-case word such as `test_`, where a key's prefix is part of a name. After
 * `MY_` the prefix may begin a key.
 */
const NO_SNAKE = "(?<![a-z0-9]_)";

/** These match only where a word begins, not inside names: `task_test_…`, `desk-admin-…`, `highs_and_…`. */
const WHERE_A_WORD_BEGINS: typeof ANYWHERE = [
  ["anthropic key", String.raw`sk-ant-${DRAWN}[\w-]{12,}`],
  ["openai key", String.raw`sk-(?:proj|svcacct|admin|None)-${DRAWN}[\w-]{16,}`],
  ["openrouter key", String.raw`sk-or-v\d-[\w-]{16,}`],
  ["github token", String.raw`${NO_SNAKE}gh[opsur]_${DRAWN}[A-Za-z0-9_]{20,}(?:\.[\w-]{8,512}){0,2}`],
  ["stripe key", String.raw`${NO_SNAKE}[rs]k_(?:live|test|prod)_${DRAWN}[A-Za-z0-9]{10,}`],
  ["slack token", String.raw`xapp-\d-[\w-]{10,}`],
  ["kinfold token", String.raw`kf[a-z]_${DRAWN}[\w-]{40,}`],
];

/** These match only where a word begins, and not in images and checksums, which contain them by chance. */
const AT_A_WORD: readonly (readonly [kind: string, pattern: string])[] = [
  ["openai key", String.raw`sk-[A-Za-z0-9]{20,}`],
  ["google key", String.raw`AIza[\w-]{35}(?![\w-])`],
  ["google token", String.raw`(?<![A-Za-z0-9+/])1//0[\w-]{20,}`],
  ["aws key", String.raw`A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])`],
  ["aws key", String.raw`ABSK[A-Za-z0-9+/]{80,}=*`],
  ["azure secret", String.raw`[\w.~]{3}\dQ~[\w.~-]{28,40}`],
  ["sendgrid key", String.raw`SG\.[\w-]{16,64}\.[\w-]{16,}`],
  ["twilio key", String.raw`SK[0-9a-f]{32}(?![A-Za-z0-9])`],
  ["telegram token", String.raw`\d{8,12}:AA[\w-]{30,}`],
  ["discord token", String.raw`[MNO][\w-]{22,28}\.[\w-]{6}\.[\w-]{27,}`],
  ["databricks token", String.raw`dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])`],
  ["mailgun key", String.raw`key-[0-9a-f]{32}(?![A-Za-z0-9])`],
  ["mailchimp key", String.raw`[0-9a-f]{32}-us\d{1,2}(?!\w)`],
  ["bitbucket token", String.raw`(?<![+/])ATBB[A-Za-z0-9]{28,}`],
  ["airtable token", String.raw`pat[A-Za-z0-9]{14}\.[0-9a-f]{60,}`],
  ["replicate token", String.raw`r8_[A-Za-z0-9]{36,}`],
  ["elevenlabs key", String.raw`sk_[0-9a-f]{40,}`],
  ["resend key", String.raw`${NO_SNAKE}re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}`],
  ["firecrawl key", String.raw`fc-[0-9a-f]{32}(?![A-Za-z0-9])`],
  ["crates.io token", String.raw`(?<![+/])cio[A-Za-z0-9]{32}(?![A-Za-z0-9])`],
  ["nuget key", String.raw`(?<![+/])oy2[a-z0-9]{43}(?![A-Za-z0-9])`],
  ["hubspot token", String.raw`pat-(?:na|eu|ap)\d-[0-9a-f-]{36}`],
  ["terraform token", String.raw`[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}`],
  ["cloudflare key", String.raw`v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}`],
  ["wallet key", String.raw`5[HJK][1-9A-HJ-NP-Za-km-z]{49}(?![A-Za-z0-9])`],
  ["wallet key", String.raw`(?<![+/])[KL]${DRAWN}[1-9A-HJ-NP-Za-km-z]{51}(?![A-Za-z0-9+/=])`],
  ["jwt", String.raw`(?<!-)eyJ[\w-]{8,}\.[\w-]{6,}(?:\.[\w-]{6,}){0,3}`],
];

/**
 * The start of a word. Besides a space, a quote or `_`, a word may follow `\n` in JSON, `%3D` in an address,
 * or a colour sequence on a terminal.
 */
const WORD_START = String.raw`(?<=^|[^A-Za-z0-9]|\\[nrtbf]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\x1b\[[0-9;]{0,12}m)`;

const either = (shapes: typeof ANYWHERE): string => shapes.map(([, pattern]) => pattern).join("|");
/** Not inside a long base64 run: images and checksums contain any short sequence by chance. */
const NO_BASE64 = "(?<![A-Za-z0-9+/]{40})";
const AT_WORDS = `${either(WHERE_A_WORD_BEGINS)}|${NO_BASE64}(?:${either(AT_A_WORD)})`;
const SHAPE = new RegExp(`(?:${either(ANYWHERE)})|${WORD_START}(?:${AT_WORDS})`, "g");
const KINDS = [...ANYWHERE, ...WHERE_A_WORD_BEGINS, ...AT_A_WORD].map(([kind, pattern]) => ({
  kind,
  // The lookbehind is removed: `SHAPE` has already checked it, and the matched text does not contain it.
  whole: new RegExp(`^(?:${pattern.replace(/^\(\?<[=!][^)]*\)/, "")})$`),
}));

/** The most characters that `WORD_START` looks at before a word. */
const BEFORE_MAX = 24;

export function shapesIn(text: string): Secret[] {
  const found: Secret[] = [];
  for (const { start, end } of runsIn(text)) {
    const from = Math.max(0, start - BEFORE_MAX);
    const piece = text.slice(from, end);
    // Not `matchAll`: it copies the expression each time, and this one is long.
    SHAPE.lastIndex = start - from;
    for (let match = SHAPE.exec(piece); match !== null; match = SHAPE.exec(piece)) {
      const { index, 0: whole } = match;
      found.push({ start: from + index, end: from + index + whole.length, kind: kindOf(whole) });
    }
  }
  for (let at = text.indexOf("…"); at !== -1; at = text.indexOf("…", at + 1)) {
    const cut = CUT.exec(text.slice(Math.max(0, at - CUT_MAX), at));
    if (cut !== null) found.push({ start: at - cut[0].length, end: at, kind: "key" });
  }
  return found;
}

/** The beginning of a key that was cut off with `…` and is now too short for its shape. */
const CUT =
  /(?<![A-Za-z0-9_])(?:sk-(?:ant|proj|or|svcacct)-|sk-|gh[opsur]_|github_pat_|gl(?:pat|ptt|dt|rt|sa)[-_]|xox[a-z]-|xapp-|[rs]k_(?:live|test)_|whsec_|npm_|hf_|pypi-Ag|AKIA|ASIA|AIza|GOCSPX-|ya29\.|eyJ|lin_api_|ntn_|secret_|kf[a-z]_|do[oprt]_v1_|dckr_pat_|SG\.|hv[bsr]\.|shpat_|figd_|gsk_|xai-)(?=[\w.+/=-]{0,100}[A-Z0-9])[\w.+/=-]{4,}$/;
const CUT_MAX = 120;

function kindOf(text: string): string {
  return KINDS.find(({ whole }) => whole.test(text))?.kind ?? "key";
}

/** Every shape is at least this long and consists only of the characters in `RUN_CODES`. */
const RUN_MIN = 15;
const RUN_CODES = new Uint8Array(128);
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./~+=:-") {
  RUN_CODES[char.charCodeAt(0)] = 1;
}

/**
 * Finds ranges that may contain a shape. Fast, because it steps by `RUN_MIN` and looks back only to the
 * nearest character that no shape contains.
 */
function runsIn(text: string): { start: number; end: number }[] {
  const runs: { start: number; end: number }[] = [];
  const { length } = text;
  let from = 0;
  while (from + RUN_MIN <= length) {
    let at = from + RUN_MIN - 1;
    while (at >= from && RUN_CODES[text.charCodeAt(at)] === 1) at -= 1;
    if (at >= from) {
      from = at + 1;
      continue;
    }
    let end = from + RUN_MIN;
    while (end < length && RUN_CODES[text.charCodeAt(end)] === 1) end += 1;
    runs.push({ start: from, end });
    from = end;
  }
  return runs;
}
