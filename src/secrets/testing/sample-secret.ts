/** Secrets for tests. They are assembled from parts, so that no scanner finds one in the repository. */

export interface SampleSecret {
  readonly kind: string;
  /** Must never be stored. */
  readonly secret: string;
  readonly text: string;
}

const LOWER = "abcdefghijklmnopqrstuvwxyz";
const UPPER = LOWER.toUpperCase();
const DIGITS = "0123456789";
const WORD = LOWER + UPPER + DIGITS;
const HEX = `${DIGITS}abcdef`;

/** Returns the same secrets for the same seed, and others for another seed. */
export function sampleSecrets(seed: number): SampleSecret[] {
  const { of, word, hex, url, base64 } = drawing(seed);
  const made: SampleSecret[] = [];
  const add = (kind: string, secret: string, text = `use ${secret} for this`): void => {
    made.push({ kind, secret, text });
  };
  add("anthropic key", ["sk", "ant", "api03", url(95)].join("-"));
  add("openai project key", ["sk", "proj", url(120)].join("-"));
  add("openai key", ["sk", word(48)].join("-"));
  add("openrouter key", ["sk", "or", "v1", hex(64)].join("-"));
  add("google api key", `AI${"za"}${url(35)}`);
  add("google client secret", ["GOCSPX", url(28)].join("-"));
  add("github classic token", ["ghp", word(36)].join("_"));
  add("github fine-grained token", ["github", "pat", word(22), word(59)].join("_"));
  add("github app token", ["ghs", word(36)].join("_"));
  add("gitlab token", ["glpat", url(20)].join("-"));
  add("slack bot token", ["xoxb", of(DIGITS, 12), of(DIGITS, 12), word(24)].join("-"));
  add("slack webhook", ["T" + of(UPPER, 8), "B" + of(UPPER, 8), word(24)].join("/"), "");
  add("aws access key", `AK${"IA"}${of(UPPER + DIGITS, 16)}`);
  const aws = base64(40);
  add("aws secret key", aws, `aws_secret_access_key = ${aws}\n`);
  const azure = `${base64(86)}==`;
  add("azure storage key", azure, `AccountName=a;AccountKey=${azure};EndpointSuffix=core.windows.net`);
  add("azure client secret", `${word(3)}8Q${"~"}${word(34)}`);
  add("stripe key", ["sk", "live", word(24)].join("_"));
  add("npm token", ["npm", word(36)].join("_"));
  add("pypi token", ["pypi", `AgEIcHlwaS5vcmc${url(70)}`].join("-"));
  add("hugging face token", ["hf", word(34)].join("_"));
  add("sendgrid key", ["SG", url(22), url(43)].join("."));
  add("twilio key", `SK${hex(32)}`);
  add("telegram token", [of(DIGITS, 10), `AA${url(33)}`].join(":"));
  add("discord token", [`M${word(23)}`, url(6), url(38)].join("."));
  add("digitalocean token", ["dop", "v1", hex(64)].join("_"));
  add("linear key", ["lin", "api", word(40)].join("_"));
  add("notion token", ["ntn", word(46)].join("_"));
  add("kinfold token", ["kfs", url(43)].join("_"));
  add("jwt", [`ey${"J"}${url(33)}`, `ey${"J"}${url(80)}`, url(43)].join("."));
  const key = [base64(64), base64(64), base64(64), `${base64(22)}==`];
  const border = (name: string): string => `-----${name} RSA PRIVATE${" "}KEY-----`;
  add("private key", key[1] as string, [border("BEGIN"), ...key, border("END")].join("\n"));
  add("private key, cut off", key[2] as string, [border("BEGIN"), ...key.slice(0, 3)].join("\n"));
  const removed = [border("BEGIN"), base64(64), base64(64), `${base64(30)}==`, border("END")];
  add("private key in a diff", removed[2] as string, removed.map((line) => `-${line}`).join("\n"));
  add("cloudflare origin key", ["v1.0", hex(24), hex(146)].join("-"));
  const base58 = WORD.replaceAll(/[0OIl]/g, "");
  add("wallet key", `5${"K"}${of(base58, 49)}`);
  add("compressed wallet key", `L${of(base58, 49)}4a`);
  const all = [...made, ...namedSecrets(seed), ...placedSecrets(seed)];
  return all.map((each) => (each.text === "" ? { ...each, text: webhook(each.secret) } : each));
}

/** Secrets that only their name, their position or a command reveals. */
function namedSecrets(seed: number): SampleSecret[] {
  const { of, word, url } = drawing(seed + 0x5eed);
  const made: SampleSecret[] = [];
  const add = (kind: string, secret: string, text: string): void => {
    made.push({ kind, secret, text });
  };
  const password = `${word(9)}4$${word(6)}`;
  add("connection string", password, `postgres://app:${password}@db.example.com:5432/app?sslmode=require`);
  const bearer = url(40);
  add("bearer header", bearer, `curl -H "Authorization: Bearer ${bearer}" https://api.example.com/v1/items`);
  const basic = btoa(`user:${word(14)}`);
  add("basic header", basic, `Authorization: Basic ${basic}\n`);
  const cookie = word(32);
  add("cookie", cookie, `Cookie: theme=dark; sid=${cookie}\n`);
  const env = word(18);
  add("environment", env, `export DEPLOY_TOKEN=${env}\n`);
  const json = `${word(6)}-${word(7)}1`;
  add("json field", json, `{"user":"bob","password":"${json}","n":1}`);
  const yaml = `${word(8)}7${word(4)}`;
  add("yaml field", yaml, `db:\n  user: bob\n  password: ${yaml}\n  port: 5432\n`);
  const query = word(24);
  add("url query", query, `GET https://example.com/x?user=1&access_token=${query}&page=2`);
  const flag = `${word(10)}9`;
  add("flag", flag, `tool login --password ${flag} --verbose`);
  const header = word(28);
  add("api key header", header, `X-Api-Key: ${header}\n`);
  const phrase = `${of(LOWER, 6)} ${of(LOWER, 7)} ${of(LOWER, 8)} ${of(LOWER, 5)}`;
  add("quoted phrase", phrase, `PASSPHRASE="${phrase}"\n`);
  const spoken = `${of(LOWER, 7)}${of(DIGITS, 3)}`;
  add("said in prose", spoken, `By the way, the password is ${spoken} until Monday.`);
  const odbc = `${word(9)}!${word(5)}`;
  add("odbc connection string", odbc, `Server=tcp:db,1433;Uid=sa;Pwd=${odbc};Encrypt=yes`);
  const hash = word(14);
  add("address with a hash", hash, `postgres://app:${word(4)}#${hash}@db.example.com:5432/app`);
  const which = `${word(12)}3`;
  add("one of several", which, `DB_PASSWORD_PROD=${which}\n`);
  const pair = word(20);
  add("name and value", pair, `[{"name":"DB_PASSWORD","value":"${pair}"}]`);
  const sql = word(15);
  add("sql", sql, `ALTER USER bob WITH PASSWORD '${sql}'`);
  const scheme = word(30);
  add("scheme of any name", scheme, `Authorization: GenieKey ${scheme}\n`);
  const bold = `${word(11)}5`;
  add("bold name", bold, `- **password**: ${bold}\n`);
  const argument = word(13);
  add("quoted argument", argument, `mysql -u root -p'${argument}' app`);
  return made;
}

/** Secrets that a vendor's file format or address reveals. */
function placedSecrets(seed: number): SampleSecret[] {
  const { of, word, url, hex, base64 } = drawing(seed + 0xface);
  const uuid = (): string => [hex(8), hex(4), hex(4), hex(4), hex(12)].join("-");
  const bot = url(35);
  const kube = `LS0tLS1${"CRUdJ"}${base64(400)}`;
  const ngrok = `2${word(26)}_${word(20)}`;
  const teams = hex(32);
  const oracle = `${word(9)}7`;
  const netrc = `${word(9)}3`;
  const plus = `${word(9)}1`;
  return [
    {
      kind: "telegram address",
      secret: bot,
      text: `https://api.telegram.org/bot${of("123456789", 10)}:${bot}/sendMessage`,
    },
    { kind: "kubeconfig", secret: kube, text: `users:\n- user:\n    client-key-data: ${kube}==\n` },
    { kind: "ngrok command", secret: ngrok, text: `ngrok config add-authtoken ${ngrok}` },
    {
      kind: "teams webhook",
      secret: teams,
      text: `https://acme.webhook.office.com/webhookb2/${uuid()}@${uuid()}/IncomingWebhook/${teams}/${uuid()}`,
    },
    {
      kind: "oracle address",
      secret: oracle,
      text: `jdbc:oracle:thin:scott/${oracle}@//db.example.com:1521/APP`,
    },
    { kind: "sqlplus", secret: plus, text: `sqlplus -s scott/${plus}@APP` },
    {
      kind: "netrc in JSON",
      secret: netrc,
      text: String.raw`{"text":"host x\nmachine example.com\nlogin bob\npassword ${netrc}\n"}`,
    },
  ];
}

/** Keys that are recognized by their shape alone, each with the kind that its redaction mark names. */
export function vendorKeys(seed: number): [kind: string, key: string][] {
  const { of, word, hex, url } = drawing(seed);
  const joined = (by: string, ...parts: string[]): string => parts.join(by);
  return [
    ["anthropic key", joined("-", "sk", "ant", "api03", url(95))],
    ["openai key", joined("-", "sk", "svcacct", url(60))],
    ["openrouter key", joined("-", "sk", "or", "v1", hex(64))],
    ["google key", `AI${"za"}${url(35)}`],
    ["google token", joined(".", "ya29", url(60))],
    ["github token", joined("_", "gho", word(36))],
    ["github token", joined("_", "github", "pat", word(22), word(59))],
    ["gitlab token", joined("-", "glptt", hex(40))],
    ["slack token", joined("-", "xoxp", of(DIGITS, 12), of(DIGITS, 12), hex(32))],
    ["slack token", joined("-", "xapp", "1", `A${of(UPPER, 10)}`, of(DIGITS, 12), hex(64))],
    ["aws key", `AS${"IA"}${of(UPPER + DIGITS, 16)}`],
    ["stripe key", joined("_", "rk", "live", word(24))],
    ["webhook secret", joined("_", "whsec", word(32))],
    ["npm token", joined("_", "npm", word(36))],
    ["rubygems key", joined("_", "rubygems", hex(48))],
    ["hugging face token", joined("_", "hf", word(34))],
    ["sendgrid key", joined(".", "SG", url(22), url(43))],
    ["telegram token", joined(":", of("123456789", 10), `AA${url(33)}`)],
    ["discord token", joined(".", `N${word(23)}`, url(6), url(38))],
    ["digitalocean token", joined("_", "dor", "v1", hex(64))],
    ["linear key", joined("_", "lin", "api", word(40))],
    ["notion token", joined("_", "secret", word(43))],
    ["grafana token", joined("_", "glsa", word(32), hex(8))],
    ["vault token", joined(".", "hvs", url(90))],
    ["doppler token", joined(".", "dp", "pt", word(43))],
    ["shopify token", joined("_", "shpat", hex(32))],
    ["databricks token", `dapi${hex(32)}`],
    ["netlify token", joined("_", "nfp", word(40))],
    ["supabase key", joined("_", "sbp", hex(40))],
    ["docker token", joined("_", "dckr", "pat", url(27))],
    ["figma token", joined("_", "figd", url(40))],
    ["groq key", joined("_", "gsk", word(52))],
    ["xai key", joined("-", "xai", word(80))],
    ["perplexity key", joined("-", "pplx", word(48))],
    ["replicate token", joined("_", "r8", word(37))],
    ["nvidia key", joined("-", "nvapi", url(64))],
    ["airtable token", joined(".", `pat${word(14)}`, hex(64))],
    ["postman key", joined("-", "PMAK", hex(24), hex(34))],
    ["sentry token", joined("_", "sntrys", word(80))],
    ["tailscale key", joined("-", "tskey", "auth", word(16), word(32))],
    ["terraform token", joined(".", word(14), "atlasv1", url(67))],
    ["age key", joined("-", "AGE", "SECRET", "KEY", `1${of(UPPER + DIGITS, 58)}`)],
    ["kinfold token", joined("_", "kfp", url(43))],
    ["jwt", joined(".", `ey${"J"}${word(33)}`, `ey${"J"}${word(80)}`, word(43))],
  ];
}

/** Returns `count` hashes, ids, paths and lines of code that redaction must not change. */
export function sampleInnocents(seed: number, count: number): string[] {
  const { of, word, hex, base64 } = drawing(seed);
  const uuid = (): string => [hex(8), hex(4), `7${hex(3)}`, `a${hex(3)}`, hex(12)].join("-");
  const kinds: readonly (() => string)[] = [
    () => hex(40),
    () => `commit ${hex(40)}`,
    () => `index ${hex(7)}..${hex(7)} 100644`,
    () => hex(64),
    () => `sha256:${hex(64)}`,
    uuid,
    () => `session ${uuid()} (${hex(8)})`,
    () => `<!-- message:${hex(8)} -->`,
    () => `sha512-${base64(86)}==`,
    () => `"integrity": "sha512-${base64(86)}=="`,
    () => `/home/${of(LOWER, 6)}/src/${of(LOWER, 9)}/${of(LOWER, 5)}-${hex(8)}.ts`,
    () => `node_modules/.pnpm/${of(LOWER, 5)}@${of(DIGITS, 1)}.0.2/node_modules/${of(LOWER, 5)}/index.js`,
    () => `data:image/png;base64,iVBORw0KGgo${base64(400)}`,
    () => `https://example.com/${of(LOWER, 8)}/${hex(12)}?page=${of(DIGITS, 2)}&sort=name`,
    () => `docker.io/library/node@sha256:${hex(64)}`,
    () => `toolu_01${word(22)}`,
    () => `call_${word(24)}`,
    () => `msg_01${word(22)}`,
    () => `${of(LOWER, 6)}_TOKEN_COUNT=${of(DIGITS, 4)}`,
    () => `max_tokens: ${of(DIGITS, 4)}`,
    () => `const ${of(LOWER, 5)}Token = await get${of(LOWER, 5)}Token();`,
    () => `password: string; // ${of(LOWER, 6)}`,
    () => `if (key === "${of(LOWER, 6)}") return process.env.API_KEY;`,
    () => `export const KEY_${of(UPPER, 5)} = ${of(DIGITS, 3)};`,
    () => `postgres://localhost:5432/${of(LOWER, 6)}`,
    () => `git@github.com:${of(LOWER, 6)}/${of(LOWER, 7)}.git`,
    () =>
      `2026-11-16T0${of("12345", 1)}:${of("12345", 1)}2:11.123Z pid=${of(DIGITS, 5)} fence=${of(DIGITS, 2)}`,
    () => `${hex(8)}:${hex(8)} ${of(DIGITS, 5)} 0x${hex(16)}`,
    ...ORDINARY.map((text) => () => text),
  ];
  return Array.from({ length: count }, (_, i) => (kinds[i % kinds.length] as () => string)());
}

/** Lines from real repositories and terminals, each of which resembles a secret. */
const ORDINARY = `
tests/network_test_environment.py
src/benchmark_test_performance.rs
framework_test_integration/
disk_test_configuration.yaml
task_prod_deployment
npm run task_live_reloading1
def test_network_test_connections():
disk_live_migration1234567890
helpdesk-admin-dashboard-components/
desk-admin-settings-page-v2
risk-proj-management-service
https://ci.example.com/webtask-svcacct-rotation-job
highs_and_lows_calculation_v2.py
laughs_per_minute_and_other_statistics.csv
src/weighs_heavily_on_the_final_results2.ts
const brightness_ghs_measurement_units_v2 = 1
src/task-ant-design-components-v5/index.tsx
kiosk-None-of-the-above-2024/
docs/risk-or-v2-migration-guide-notes.md
ricxapp-1-deployment-scheduler
scripts/mask_prod_credentials_export.sh
Running task-management-service…
npm_lifecycle_event… was cut
docker login x && docker run -p 8080:80 y
az login; az network vnet create -p 10.0.0.0/16
curl -fsSL https://example.com/install.sh | docker run -i -u 1000:1000 alpine sh
please login with password authentication2 enabled
The login page password field1 is
def test_login_with_password_field1():
PASS src/secrets/redact.test.ts
PASS 12 tests in 31.4s
# pass 143
pass=$?
PWD=/srv/dev/project-12
OLDPWD=/srv/app2/releases
const password = getPassword()
token: Token | null
secretName: tls-secret-v2
GITHUB_TOKEN: \${{ secrets.GITHUB_TOKEN }}
http://localhost:5173/@vite/client
https://medium.com/@jane/post-12345
{ type: 'token', value: 'identifier12' }
TOKENS_PER_MINUTE=90000
MAX_TOKENS=128000
password_reset_expires_at: 2026-11-16T01:02:11Z
ENV NODE_ENV production
ARG TOKEN_SERVER_VERSION=1.2.3
Authorization: see section 4.2 of RFC7235
| password | string | at least 8 characters |
**Token**: the unit that is counted
The column is identified by 'user_id2'
key.pem-3-of-4 is not here
`
  .trim()
  .split("\n");

function webhook(secret: string): string {
  return `POST https://hooks.slack.com/services/${secret} with the text`;
}

function drawing(seed: number): {
  of: (letters: string, length: number) => string;
  word: (length: number) => string;
  hex: (length: number) => string;
  url: (length: number) => string;
  base64: (length: number) => string;
} {
  let state = seed >>> 0;
  const below = (max: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * max);
  };
  const of = (letters: string, length: number): string => {
    let text = "";
    for (let i = 0; i < length; i++) text += letters[below(letters.length)];
    return text;
  };
  return {
    of,
    word: (length) => `${of(WORD, length - 2)}${of(DIGITS, 1)}${of(LOWER, 1)}`,
    hex: (length) => of(HEX, length),
    url: (length) => `${of(WORD, 1)}${of(`${WORD}-_`, length - 2)}${of(WORD, 1)}`,
    base64: (length) => of(`${WORD}+/`, length),
  };
}
