import { posix } from "node:path";
import { type Import, importsOf } from "./layers.ts";
import { type CodeFile, type Finding, finding, isTest, type Tree } from "./tree.ts";

interface Edge extends Import {
  readonly from: CodeFile;
  readonly to: string;
}

/**
 * Refuses two kinds of import cycles. In a cycle of values, the order in which modules run depends on which
 * is imported first. In a cycle of types across folders, neither folder can be read without the other.
 */
export function checkCycles({ code }: Pick<Tree, "code">): Finding[] {
  const ofValues = valueCycles(code);
  const known = new Set(ofValues.flat());
  const edges = trimmed(importsIn(code));
  const crossing = edges.filter(({ from, to }) => posix.dirname(from.path) !== posix.dirname(to));
  const ofTypes = cyclesThrough(crossing, edges).filter((cycle) => !cycle.every((edge) => known.has(edge)));
  return [
    ...ofValues.map((cycle) => told(cycle, "a cycle of imports")),
    ...ofTypes.map((cycle) => told(cycle, "a cycle of type imports across folders")),
  ];
}

/** Counts the groups of files that import each other's values. */
export function countCycleGroups(code: readonly CodeFile[]): number {
  const groups: Set<string>[] = [];
  for (const cycle of valueCycles(code)) {
    const files = new Set(cycle.map(({ to }) => to));
    const known = groups.find((group) => !group.isDisjointFrom(files));
    if (known === undefined) groups.push(files);
    else for (const file of files) known.add(file);
  }
  return groups.length;
}

function valueCycles(code: readonly CodeFile[]): Edge[][] {
  const values = trimmed(importsIn(code).filter(({ typeOnly }) => !typeOnly));
  return cyclesThrough(values, values);
}

function importsIn(code: readonly CodeFile[]): Edge[] {
  return code.filter(({ path }) => !isTest(path)).flatMap(edgesOf);
}

function edgesOf(file: CodeFile): Edge[] {
  return importsOf(file)
    .filter(({ specifier }) => specifier.startsWith("."))
    .map((found) => ({ ...found, from: file, to: posix.join(posix.dirname(file.path), found.specifier) }));
}

function told(cycle: readonly Edge[], what: string): Finding {
  const [first] = cycle;
  if (first === undefined) throw new Error("A cycle has at least one import.");
  const way = [first.from.path, ...cycle.map(({ to }) => to)].join(" → ");
  return finding(first.from, first.node, `${what}: ${way}`);
}

/**
 * Repeatedly drops each import of a file that itself imports nothing, because such an import cannot be part
 * of a cycle.
 */
function trimmed(edges: readonly Edge[]): readonly Edge[] {
  const importing = new Set(edges.map(({ from }) => from.path));
  const left = edges.filter(({ to }) => importing.has(to));
  return left.length === edges.length ? edges : trimmed(left);
}

/**
 * Returns the shortest cycle through each of the given imports, unless an earlier cycle contains that import.
 */
function cyclesThrough(some: readonly Edge[], edges: readonly Edge[]): Edge[][] {
  const next = Map.groupBy(edges, ({ from }) => from.path);
  const cycles: Edge[][] = [];
  const seen = new Set<Edge>();
  for (const edge of some) {
    if (seen.has(edge)) continue;
    const back = shortestWay(edge.to, edge.from.path, next);
    if (back === null) continue;
    const cycle = [edge, ...back];
    cycles.push(cycle);
    for (const one of cycle) seen.add(one);
  }
  return cycles;
}

/** Returns the shortest chain of imports between two files: empty for the same file, null if none exists. */
function shortestWay(
  start: string,
  goal: string,
  next: ReadonlyMap<string, readonly Edge[]>,
): readonly Edge[] | null {
  const ways = new Map<string, readonly Edge[]>([[start, []]]);
  for (const [at, way] of ways) {
    if (at === goal) return way;
    for (const edge of next.get(at) ?? []) {
      if (!ways.has(edge.to)) ways.set(edge.to, [...way, edge]);
    }
  }
  return null;
}
