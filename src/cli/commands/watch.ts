import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { familyLines } from "../show/family.ts";
import { keysOf } from "../terminal/keys.ts";
import { eventLine } from "../show/event-line.ts";
import { followSessions, type LiveView } from "../terminal/live.ts";
import { fullScreen } from "../terminal/screen.ts";
import { findSession } from "../sessions.ts";
import { clip, clock } from "../terminal/text.ts";
import { isOpen } from "../show/words.ts";
import { count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const { client } = await openConnection(call);
  const [ref] = call.args;
  const tree = ref === undefined ? undefined : (await findSession(client, ref)).rootId;
  const quit = new AbortController();
  const options = { signal: quit.signal, all: call.flags.on("all"), ...(tree === undefined ? {} : { tree }) };
  if (!call.io.tty || call.io.stdin.isTTY !== true) {
    await followSessions(client, {
      ...options,
      onChange: () => {},
      onEvent: (event, session) => {
        const line = call.io.json ? JSON.stringify(event) : eventLine(event, session);
        if (line !== null) call.io.line(line);
      },
    });
    return;
  }
  const frame = new Frame(call);
  keysOf(call.io.stdin, quit.signal, (key) => {
    if (key === "q" || key === "\u0003" || key === "\u001b") quit.abort();
    else frame.scroll(key);
  });
  frame.draw();
  const ticking = setInterval(() => frame.draw(), 1000);
  const onResize = () => frame.draw();
  call.io.stdout.on("resize", onResize);
  try {
    await followSessions(client, { ...options, onChange: (view) => frame.draw(view) });
  } finally {
    clearInterval(ticking);
    call.io.stdout.off("resize", onResize);
    frame.end();
  }
}

/** The full-screen view: a head line, the families, and a foot line that explains the keys. */
class Frame {
  readonly #call: Call;
  readonly #screen: ReturnType<typeof fullScreen>;
  #view: LiveView | null = null;
  #lines: string[] = [];
  #top = 0;

  constructor(call: Call) {
    this.#call = call;
    this.#screen = fullScreen(call.io.stdout);
  }

  draw(view: LiveView | null = this.#view): void {
    const { io } = this.#call;
    this.#view = view;
    const drawing = { columns: io.columns(), paint: io.paint, now: this.#now() };
    this.#lines = view === null ? [] : familyLines(view.sessions, { ...drawing, asks: view.asks });
    const room = Math.max(1, io.rows() - 3);
    this.#top = Math.max(0, Math.min(this.#top, this.#lines.length - room));
    const body = this.#lines.slice(this.#top, this.#top + room);
    if (view !== null && body.length === 0)
      body.push(io.paint("soft", clip('Nothing is open. Start something: kinfold spawn "…"', io.columns())));
    while (body.length < Math.min(room, this.#lines.length)) body.push("");
    this.#screen.draw([this.#head(view), ...body, "", this.#foot(room)]);
  }

  scroll(key: string): void {
    const page = Math.max(1, this.#call.io.rows() - 4);
    const step = STEPS[key] ?? 0;
    this.#top = Math.max(0, this.#top + (Math.abs(step) > 1 ? Math.sign(step) * page : step));
    if (step !== 0) this.draw();
  }

  /** Leaves the last view on the terminal. */
  end(): void {
    this.#screen.end();
    for (const line of this.#lines) this.#call.io.line(line);
  }

  /** Freezes ages while the daemon is unreachable, because nothing newer is known. */
  #now(): number {
    return this.#view?.offlineSince ?? Date.now();
  }

  #head(view: LiveView | null): string {
    const { paint, columns } = this.#call.io;
    if (view === null) return paint("soft", "…");
    if (view.offlineSince !== null) {
      return paint(
        "amber",
        clip(`○ offline since ${clock(view.offlineSince)}; waiting for the daemon`, columns()),
      );
    }
    const open = view.sessions.filter(isOpen).length;
    const families = new Set(view.sessions.map((session) => session.rootId)).size;
    const asked = view.sessions.filter((session) => view.asks.has(session.id)).length;
    const needs = asked === 0 ? "" : `   ◆ ${asked} need${asked === 1 ? "s" : ""} you: kinfold inbox`;
    const words = `${open} at work, ${count(families, "family", "families")}   ${clock(Date.now())}${needs}`;
    return paint(asked === 0 ? "soft" : "amber", clip(words, columns()));
  }

  #foot(room: number): string {
    const hidden = this.#lines.length - room;
    const more =
      hidden > 0
        ? ` · ↑ ↓ scroll (${this.#top + 1}–${Math.min(this.#top + room, this.#lines.length)} of ${this.#lines.length})`
        : "";
    return this.#call.io.paint("soft", clip(`q quit${more}`, this.#call.io.columns()));
  }
}

const STEPS: Record<string, number> = {
  "\u001b[A": -1,
  k: -1,
  "\u001b[B": 1,
  j: 1,
  "\u001b[5~": -2,
  "\u001b[6~": 2,
  " ": 2,
};
