import type { Session } from "../../contract/index.ts";
import type { Paint } from "../terminal/paint.ts";
import { nameOf } from "../sessions.ts";
import { clip, columnsOf, cleanLine, padTo, usd } from "../terminal/text.ts";
import { ageOf, markedWords, stateWords, surroundings } from "./words.ts";
import { tokens } from "../../text/quantity.ts";

export interface Drawing {
  readonly columns: number;
  readonly paint: Paint;
  readonly now: number;
  /** Each session's open question to a person, by session id. */
  readonly asks?: ReadonlyMap<string, string>;
}

/** A session and the tree lines drawn before its name. */
export interface Placed {
  readonly session: Session;
  readonly branch: string;
}

/** Draws one line per session in tree order. Drops the least important columns if there is no room. */
export function familyLines(sessions: readonly Session[], drawing: Drawing): string[] {
  const rows = rowsOf(sessions, drawing);
  const shape = fit(rows, drawing.columns);
  return rows.map((row) => drawRow(row, shape, drawing.paint));
}

function rowsOf(sessions: readonly Session[], drawing: Drawing) {
  const around = surroundings(sessions, drawing.asks);
  return placed(sessions).map(({ session, branch }) => ({
    branch,
    session,
    label: session.name === null ? `${session.shortId} ${nameOf(session)}` : nameOf(session),
    agent: cleanLine(session.agent),
    state: stateWords(session, around(session), drawing.now),
    age: ageOf(session, drawing.now),
    cost: usd(session.usage.usd),
    used: usedTokens(session),
  }));
}

/** Returns the sessions in tree order. One whose parent is not in the list becomes a root. */
export function placed(sessions: readonly Session[]): Placed[] {
  const known = new Set(sessions.map((session) => session.id));
  const below = Map.groupBy(sessions.toSorted(oldestFirst), ({ parentId }) =>
    parentId !== null && known.has(parentId) ? parentId : null,
  );
  const rows: Placed[] = [];
  const descend = (parent: string, indent: string): void => {
    const children = below.get(parent) ?? [];
    for (const [index, child] of children.entries()) {
      const last = index === children.length - 1;
      rows.push({ session: child, branch: `${indent}${last ? "└─ " : "├─ "}` });
      descend(child.id, `${indent}${last ? "   " : "│  "}`);
    }
  };
  for (const root of below.get(null) ?? []) {
    rows.push({ session: root, branch: "" });
    descend(root.id, "");
  }
  return rows;
}

type Row = ReturnType<typeof rowsOf>[number];

/** The widths of the columns; a column of width 0 is left out. */
type Shape = Readonly<Record<"label" | "agent" | "state" | "age" | "cost" | "used", number>>;

function fit(rows: readonly Row[], columns: number): Shape {
  const widest = (pick: (row: Row) => string) => Math.max(0, ...rows.map((row) => columnsOf(pick(row))));
  const shape = {
    label: Math.min(
      widest((row) => row.branch + row.label),
      Math.max(12, Math.floor(columns * 0.4)),
    ),
    agent: widest((row) => row.agent),
    state: widest((row) => markedWords(row.state)),
    age: widest((row) => row.age),
    cost: rows.some((row) => row.cost !== "-") ? widest((row) => row.cost) : 0,
    used: rows.some((row) => row.used !== "") ? widest((row) => row.used) : 0,
  };
  const taken = () =>
    shape.label +
    [shape.agent, shape.age, shape.cost, shape.used].reduce((sum, width) => sum + (width && width + 2), 0);
  for (const column of ["cost", "used", "agent"] as const) {
    if (columns - taken() - 2 < Math.min(shape.state, STATE_MIN)) shape[column] = 0;
  }
  return { ...shape, state: Math.max(8, Math.min(shape.state, columns - taken() - 2)) };
}

function drawRow(row: Row, shape: Shape, paint: Paint): string {
  const label = clip(row.label, Math.max(4, shape.label - columnsOf(row.branch)));
  const left = paint("soft", row.branch) + paint(isNews(row.session) ? "bold" : null, label);
  const gap = " ".repeat(Math.max(0, shape.label - columnsOf(row.branch) - columnsOf(label)));
  const words = clip(markedWords(row.state), shape.state);
  const cells = [
    left + gap,
    shape.agent > 0 ? padTo(row.agent, shape.agent) : null,
    paint(row.state.colour, words) + " ".repeat(Math.max(0, shape.state - columnsOf(words))),
    paint("soft", row.age.padStart(shape.age)),
    shape.cost > 0 ? row.cost.padStart(shape.cost) : null,
    shape.used > 0 ? row.used.padStart(shape.used) : null,
  ];
  return cells
    .filter((cell) => cell !== null)
    .join("  ")
    .trimEnd();
}

/** True if the session has finished and the person has not looked at it. */
function isNews(session: Session): boolean {
  return (
    !session.seen && (session.status === "idle" || session.status === "ended") && session.outcome !== null
  );
}

function usedTokens(session: Session): string {
  const used = session.usage.inputTokens + session.usage.outputTokens;
  return used === 0 ? "" : tokens(used);
}

function oldestFirst(a: Session, b: Session): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

const STATE_MIN = 24;
