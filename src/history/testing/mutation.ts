type Next = () => number;

/** Damages a few lines of a file, each in one of many ways. */
export function mutated(bytes: Buffer, next: Next): Buffer {
  const lines = bytes.toString("latin1").split("\n");
  const words = wordsOf(bytes.toString("utf8"));
  for (let count = 1 + Math.floor(next() * 6); count > 0; count -= 1) {
    const at = Math.floor(next() * lines.length);
    const damage = DAMAGES[Math.floor(next() * DAMAGES.length)] as Damage;
    lines.splice(at, 1, ...damage(lines[at] ?? "", { next, words, lines }));
  }
  return Buffer.from(lines.join("\n"), "latin1");
}

/** Adds every kind of hostile content to a file at once. */
export function hostile(bytes: Buffer): Buffer {
  const lines = bytes
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "");
  const names = ["__proto__", "constructor", "toString", ""];
  const swapped = lines.flatMap((line) => names.map((name) => renamed(line, name)));
  const deep = `{"type":"user","message":{"role":"user","content":${"[".repeat(50_000)}${"]".repeat(50_000)}}}`;
  const input = `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`;
  const nested = `{"type":"assistant","uuid":"deep","message":{"content":[{"type":"tool_use","id":"x","name":"Bash","input":${input}}]}}`;
  const odd = [
    "null",
    "[]",
    "1",
    '"text"',
    "{}",
    '{"type":null}',
    "\u0000\u0000",
    "\ufeff{}",
    "{",
    `{"type":${"9".repeat(400)}}`,
  ];
  return Buffer.from([...lines, ...swapped, deep, nested, ...odd, ...lines].join("\r\n"));
}

interface Given {
  readonly next: Next;
  readonly words: readonly string[];
  readonly lines: readonly string[];
}
type Damage = (line: string, given: Given) => string[];

const DAMAGES: readonly Damage[] = [
  (line, { next }) => [line.slice(0, Math.floor(next() * line.length))],
  (line) => [line, line],
  () => [],
  (line) => [`\u0000\u0000\u0000${line}`],
  (line, { next }) => [put(line, "\u0000".repeat(9), next)],
  (line, { next }) => [put(line, String.fromCharCode(Math.floor(next() * 256)), next)],
  (line, { next, lines }) => [lines[Math.floor(next() * lines.length)] ?? "", line],
  (line, { next, lines }) => [`${line}${lines[Math.floor(next() * lines.length)] ?? ""}`],
  (line, { next, words }) => [withLeaf(line, next, () => words[Math.floor(next() * words.length)])],
  (line, { next, words }) => [withLeaf(line, next, () => words[Math.floor(next() * words.length)])],
  (line, { next }) => [withLeaf(line, next, () => ODD[Math.floor(next() * ODD.length)])],
  (line, { next }) => [withLeaf(line, next, () => ODD[Math.floor(next() * ODD.length)])],
  () => ["not JSON at all"],
];

const ODD: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  "",
  "x".repeat(100_000),
  [],
  {},
  [[[[]]]],
  ["a", 1, null],
  { type: {}, text: [], id: 7 },
  "\ud800",
  "0000-99-99T99:99:99Z",
];

function put(line: string, piece: string, next: Next): string {
  const at = Math.floor(next() * line.length);
  return `${line.slice(0, at)}${piece}${line.slice(at)}`;
}

/** Returns short texts of the file, mostly ids: swapping them creates false links. */
function wordsOf(text: string): string[] {
  return [...text.matchAll(/"([\w-]{6,40})"/gu)].map((match) => match[1] as string);
}

function withLeaf(line: string, next: Next, value: () => unknown): string {
  const places: { owner: Record<string, unknown>; name: string }[] = [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return line;
  }
  const walk = (owner: unknown): void => {
    if (typeof owner !== "object" || owner === null) return;
    for (const name of Object.keys(owner)) {
      places.push({ owner: owner as Record<string, unknown>, name });
      walk((owner as Record<string, unknown>)[name]);
    }
  };
  walk(parsed);
  // Prefers fields near the top, which matter most.
  const place = places[Math.floor(next() ** 2 * places.length)];
  if (place !== undefined) place.owner[place.name] = value();
  return JSON.stringify(parsed);
}

function renamed(line: string, name: string): string {
  return line.replace(
    /"(uuid|parentUuid|agentId|sessionId|type|id|name|tool_use_id)":"[^"]*"/gu,
    `"$1":${JSON.stringify(name)}`,
  );
}
