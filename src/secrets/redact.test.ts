import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { excerpt, GIVEN_AWAY, redact } from "./redact.ts";
import { sampleInnocents, sampleSecrets, vendorKeys } from "./testing/sample-secret.ts";
import { INNOCENT, SPELLINGS } from "./testing/sample-spelling.ts";
import { LEADS } from "./detect/command.ts";
import { HINT } from "./detect/field.ts";
import { checkProperty } from "../testing/seeds.ts";

it("a text is looked through for names wherever it has a word that one could have", () => {
  const words = `${HINT.source}|${LEADS.source}`.replace("sig(?:nature)?=", "sig=|signature=").split("|");
  assert.equal(words.length, 28);
  for (const word of words) {
    for (const text of [word, word.toUpperCase(), `a ${word}`, `${word} b`]) assert.match(text, GIVEN_AWAY);
    assert.doesNotMatch(word.slice(0, 2), GIVEN_AWAY);
  }
});

it("a key's first letters in the middle of a word are the name of a file", () => {
  for (const word of [
    "task_test_",
    "disk_live_",
    "desk-admin-",
    "risk-proj-",
    "task-ant-",
    "highs_",
    "foxapp-1-",
  ]) {
    for (const rest of ["environment", "and_the_lows_v2", "dashboard-components-v2", "migration1234567890"]) {
      for (const text of [`${word}${rest}`, `src/${word}${rest}.py`, `${word}${rest}…`])
        assert.equal(redact(text), text);
    }
  }
});

it("a vendor's first letters before words are no key", () => {
  for (const text of [
    "sk_test_environment",
    "sk-proj-management-service",
    "sk-ant-design-components",
    "sk-folding…",
  ]) {
    assert.equal(redact(text), text);
  }
});

it("a command's password is not looked for in the next command", () => {
  for (const next of ["&&", "|", ";", "||"]) {
    for (const text of [
      `docker login x ${next} docker run -p 8080:80 y`,
      `curl x ${next} y -u 1000:1000 z`,
    ]) {
      assert.equal(redact(text), text);
    }
  }
});

describe("every kind of secret", () => {
  for (const { kind } of sampleSecrets(1)) {
    it(`is hidden, and what stands around it stays: ${kind}`, () => {
      for (let seed = 1; seed <= 40; seed++) {
        const { secret, text } = sampleSecrets(seed).find((each) => each.kind === kind)!;
        for (const whole of [text, `Before.\n${text}\nBehind.`, JSON.stringify({ output: `x\n${text}` })]) {
          const shown = redact(whole);
          assert.ok(!shown.includes(secret), `${JSON.stringify(whole)} became ${JSON.stringify(shown)}`);
          assert.match(shown, /\[redacted: [a-z0-9 .]+\]/);
          assert.equal(redact(shown), shown, "twice is as once");
        }
        const around = redact(`Before.\n${text}\nBehind.`);
        assert.ok(around.startsWith("Before.\n") && around.endsWith("\nBehind."), around);
      }
    });
  }

  it("is known by its vendor's shape alone, in prose, quotes, JSON, an address and a colour", () => {
    for (let seed = 1; seed <= 20; seed++) {
      for (const [kind, key] of vendorKeys(seed)) {
        const mark = `[redacted: ${kind}]`;
        assert.equal(redact(key), mark);
        assert.equal(redact(`it is ${key}, I think`), `it is ${mark}, I think`);
        assert.equal(redact(`x("${key}")`), `x("${mark}")`);
        assert.equal(redact(`"a\\n${key}\\n"`), `"a\\n${mark}\\n"`);
        assert.equal(redact(`https://h/?q=${key}`), `https://h/?q=${mark}`);
        assert.equal(redact(`\u001b[32m${key}\u001b[0m`), `\u001b[32m${mark}\u001b[0m`);
      }
    }
  });
});

describe("a secret behind its name", () => {
  for (const text of SPELLINGS) {
    it(`is hidden in ${text}`, () => {
      const shown = redact(text);
      assert.ok(!shown.includes("hunter"), shown);
      assert.equal(redact(shown), shown);
    });
  }

  it("leaves everything else of its line", () => {
    const kept = [
      ["postgres://app:hunter2@db:5432/x", "postgres://app:[redacted: password]@db:5432/x"],
      ["Authorization: Bearer hunter2hunter2", "Authorization: Bearer [redacted: credential]"],
      ["Password=hunter2;User=bob", "Password=[redacted: password];User=bob"],
      ["?token=hunter2&page=2", "?token=[redacted: token]&page=2"],
      ['{"password":"hunter2","n":1}', '{"password":"[redacted: password]","n":1}'],
      ["a: 1\npassword: hunter2\nb: 2", "a: 1\npassword: [redacted: password]\nb: 2"],
    ] as const;
    for (const [text, shown] of kept) assert.equal(redact(text), shown);
  });
});

describe("what only looks like a secret", () => {
  for (const text of INNOCENT) it(`stays as it is: ${text}`, () => assert.equal(redact(text), text));

  it("stays as it is: hashes, ids, paths, images, code, a thousand of them", () => {
    for (const text of sampleInnocents(11, 1_000)) assert.equal(redact(text), text);
  });

  it("stays as it is, whatever words stand together", () => {
    const word = fc.oneof(
      fc.constantFrom(...INNOCENT),
      fc.constantFrom(...sampleInnocents(5, 100)),
      fc.lorem({ maxCount: 6 }),
      fc.integer().map(String),
      fc.stringMatching(/^[ .,;()[\]{}<>!?*#\n\t-]{0,8}$/),
    );
    const text = fc.array(word, { maxLength: 12 }).map((parts) => parts.join("\n"));
    checkProperty(
      import.meta.filename,
      fc.property(text, (whole) => assert.equal(redact(whole), whole)),
    );
  });
});

it("twice is as once, whatever stands there", () => {
  const part = fc.oneof(
    fc.constantFrom(...SPELLINGS, ...INNOCENT, ...sampleSecrets(3).map(({ text }) => text)),
    fc.constantFrom("password", "=", ": ", '"', "'", "[redacted: ", "[redacted: jwt]", "]", "://", "@", "…"),
    fc.string({ maxLength: 12 }),
  );
  const text = fc.array(part, { maxLength: 14 }).map((parts) => parts.join(""));
  checkProperty(
    import.meta.filename,
    fc.property(text, (whole) => assert.equal(redact(redact(whole)), redact(whole))),
    { numRuns: 5_000 },
  );
});

/** Each text is repeated up to a megabyte; a search that is not linear would take hours. */
const REPEATED = [
  ..."sk-|eyJ|-eyJ|eyJaaaaaaaa.|0123456789abcdef|12345678:|M|ghp_|SG.|.atlasv1.|1Q~|\\n|password=|password=\"|password='".split(
    "|",
  ),
  ..."password: |password=<|token=token.|pass|authorization: |authorization: bearer |authorization:|cookie: a=|cookie=".split(
    "|",
  ),
  ..."://|redis://a:b/|http://a:|http://a@|-|curl |curl -u |mysql |login |login x password |bearer |secret is ".split(
    "|",
  ),
  ...'--token |<password>|("password", |password:string=|a.password=|[redacted: |password=[redacted: x]|…|sk-…'.split(
    "|",
  ),
  ..."-----BEGIN PRIVATE KEY-----|-----END PRIVATE KEY-----|PRIVATE KEY-----A: b\n|PRIVATE KEY-----a |Private-Lines: 1 ".split(
    "|",
  ),
  "a",
  " ",
  "\t",
  "\n",
  "'",
  "é",
  "QUJD",
  `${"QUJD".repeat(16)}\n`,
  "cookie: a=b; ",
  'password: "x ',
  "PRIVATE KEY-----\nkey.pem-3-",
  "PRIVATE KEY-----\n-QUJDQUJDQUJDQUJD\n",
  "\nkey.pem:QUJD",
  "%3A%2F%2Fa%3A",
  "postgres://a:b#",
  "API_TOKENS_2=a,",
  "TOKEN_2_",
  "password: |\n ",
  "name=password value=",
  "ENV password ",
  "\nENV API_KEY ",
  "password:\n",
  "IDENTIFIED BY ",
  "user a identified ",
  "authorization: a ",
  "**password:** ",
  "machine a login b ",
  "\\nmachine \\n",
  "default login ",
  "login b password \\",
  "jdbc:oracle:thin:a/",
  "jdbc:oracle:",
  "sqlplus a/",
  "ngrok add-",
  "/bot1234567:",
  "IncomingWebhook/",
  "IncomingWebhook/0123456789abcdef0123456789abcdef/",
  "v1.0-0123456789abcdef01234567-",
  "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3q",
  "client-key-data: ",
  "MY_sk-ant-",
  "_sk_live_a",
];

const DIGITS_AND_LETTERS = "Xk9vQ2mZ7aB3cD4eF5gH6jK7mN8pQ9rS";

it("a key behind an underscore is one, and a name in snake case is none", () => {
  for (const [, key] of vendorKeys(21)) {
    for (const before of ["MY_", "PREFIX_", "A_B_"]) {
      assert.ok(!redact(`x ${before}${key} y`).includes(key.slice(-12)), `${before}${key}`);
    }
  }
  const stripe = ["sk", "live", "A1b2C3d4E5f6G7h8I9j0K1l2"].join("_");
  assert.equal(redact(`my_${stripe}`), "my_[redacted: stripe key]");
  for (const name of [
    "brightness_ghs_measurement_units_v2_extended",
    "network_test_sk_test_environment_variables2",
    "core_re_pattern_matching_of_very_long_names2",
    "my_task_prod_deployment_2026_settings",
  ])
    assert.equal(redact(name), name);
});

it("an id that is named as the key of a session is shown, an environment's key is not", () => {
  const shown = ["sessionKey", "session_key", "session-key"].map(
    (name) => `${name}: "agent:main:${"a1b2".repeat(6)}"`,
  );
  for (const text of shown) assert.equal(redact(text), text);
  assert.equal(redact(`SESSION_KEY=${DIGITS_AND_LETTERS}`), "SESSION_KEY=[redacted: key]");
});

it("a megabyte of anything takes time in proportion", { timeout: 240_000 }, () => {
  for (const part of REPEATED) {
    const text = part.repeat(Math.ceil(1_000_000 / part.length));
    assert.ok(redact(text).length > 0, JSON.stringify(part));
  }
  const border = (name: string): string => `-----${name} PRIVATE${" "}KEY-----`;
  const lines = `${"QUJD".repeat(16)}\n`.repeat(15_000);
  assert.equal(redact(`${border("BEGIN")}\n${lines}`), "[redacted: private key]\n");
  assert.equal(redact(`${lines}${border("END")}`), "[redacted: private key]");
  assert.equal(redact(border("BEGIN") + " ".repeat(1_000_000)).length, 1_000_027);
});

it("what is written behind a mark is hidden with it", () => {
  for (const text of [
    "DB_PASSWORD=[redacted: pw]hunter2",
    "password: [redacted: password]hunter2",
    'password: "[redacted: pw]hunter2"',
    'password: "[redacted: pw] hunter2 hunter3"',
    "Authorization: Bearer [redacted: credential]hunter2hunter2",
    "postgres://bob:[redacted: password]hunter2@localhost/app",
    "https://[redacted: token]:hunter2@example.com/",
    "--token=[redacted: token]hunter2",
  ]) {
    const shown = redact(text);
    assert.ok(!shown.includes("hunter"), shown);
    assert.equal(redact(shown), shown);
  }
  for (const text of [
    "DB_PASSWORD=[redacted: password] npm start",
    "?token=[redacted: token]&page=2",
    '{"password":"[redacted: password]","n":1}',
    "https://[redacted: token]@example.com/",
    "postgres://bob:[redacted: password]@localhost/app",
    "Authorization: Bearer [redacted: credential], and more",
  ])
    assert.equal(redact(text), text);
});

it("an excerpt is cut behind what was hidden, never within a secret", () => {
  for (const { secret, text } of sampleSecrets(9)) {
    for (let before = 0; before < 90; before += 3) {
      const shown = excerpt(`${"a ".repeat(before / 2)}${text}`, 80);
      for (let at = 0; at + 10 <= secret.length; at++) {
        assert.ok(!shown.includes(secret.slice(at, at + 10)), `${secret} in ${shown}`);
      }
    }
  }
});
