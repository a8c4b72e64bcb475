import type { ReadBatch } from "../../history/port.ts";
import type { Knowledge, Member } from "./catalog.ts";
import { type Context, type Reading, seenWorking } from "./context.ts";
import { inlineKey, sessionIdOf } from "./identity.ts";
import { judgeFamily, placeIn, type Verdict } from "./judge.ts";
import { LinkError } from "./link.ts";
import type { Lineage, MemberChange } from "./protocol.ts";
import { readMember, recordOf } from "./read.ts";
import { newRow, redactFacts, rowPatch } from "./row.ts";
import { slices } from "./scan.ts";

/** What was last told of a session is remembered for so many. */
const SENT_MAX = 20_000;
const CHANGES_MAX = 16;

/** Reads files and judges families, one thing at a time for each family. */
export class Work {
  readonly #context: Context;
  /** By key, what the store was last told, so that only news is. */
  readonly #sent = new Map<string, string>();
  readonly #lineage = new Map<string, Lineage>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Reads these files of one family to their ends, then judges it. */
  read(familyKey: string, members: readonly Member[], isLive: boolean): Promise<void> {
    const { catalog, signal } = this.#context;
    return catalog.alone(familyKey, async () => {
      const known = await catalog.knowledge(familyKey);
      for (const member of members) {
        if (signal.aborted) return;
        await this.#readOne(member, known, isLive);
      }
      await this.#judge(familyKey, known);
    });
  }

  judge(familyKey: string): Promise<void> {
    const { catalog } = this.#context;
    return catalog.alone(familyKey, async () => this.#judge(familyKey, await catalog.knowledge(familyKey)));
  }

  async #readOne(member: Member, known: Map<string, Knowledge>, isLive: boolean): Promise<void> {
    const { link, progress, grown, signal } = this.#context;
    const { stamp, readBytes } = member;
    try {
      const read = await readMember(link, {
        member,
        reader: this.#readingOf(member).reader,
        known: known.get(member.key),
        isLive,
        signal,
        inside: (agentId, batch) => this.#inside(member, agentId, batch),
        lineage: ({ key, agentId }) => this.#lineage.get(key) ?? { agentId, parentId: null, depth: 0 },
        onBytes: () => progress.tell(),
      });
      if (read !== null) known.set(member.key, read);
      member.readStamp = stamp;
      if (isLive && member.readBytes > readBytes) grown.set(member.key, Date.now());
      const record = {
        ...(read === null ? {} : recordOf(read)),
        readStamp: stamp,
        readBytes: member.readBytes,
      };
      await this.#change([{ ...at(member), record: { ...record, problem: null }, session: null }]);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof LinkError) throw error;
      // The file is read again when it changes; everything else goes on.
      member.readStamp = stamp;
      const problem = error instanceof Error ? error.message : String(error);
      await this.#change([{ ...at(member), record: { problem, readStamp: stamp }, session: null }]);
    }
    progress.tell();
  }

  async #judge(familyKey: string, known: Map<string, Knowledge>): Promise<void> {
    const { catalog, judge, live } = this.#context;
    const [some] = catalog.family(familyKey);
    if (some === undefined) return;
    const reading = this.#readingOf(some);
    const verdicts = judgeFamily({
      judge,
      reader: reading.reader,
      familyKey,
      known,
      listed: await live.of(reading),
      seenWorking: seenWorking(this.#context, Date.now()),
    });
    const changes: MemberChange[] = [];
    for (const [key, verdict] of verdicts) {
      const member = catalog.members.get(key) ?? (await this.#addInside(key, verdict, known));
      const change = member === null ? null : this.#news(member, verdict, reading);
      if (change !== null) changes.push(change);
    }
    await this.#change(changes);
  }

  /** What the store does not have yet of a session. */
  #news(member: Member, verdict: Verdict, { reader }: Reading): MemberChange | null {
    const { options, catalog } = this.#context;
    const place = placeIn(catalog, member, verdict);
    const told = { ...verdict.told, ...place, changedAt: member.found?.changedAt ?? Date.now() };
    const { agent } = reader;
    this.#lineage.set(member.key, { agentId: member.agentId, ...place });
    member.state = told.judgement.state;
    const patch = rowPatch(told, { agent, node: options.node, now: 0 });
    const record = {
      status: verdict.status,
      missing: verdict.missing.length === 0 ? null : [...verdict.missing],
    };
    const text = JSON.stringify([patch, record]);
    if (this.#sent.get(member.key) === text) return null;
    if (this.#sent.size > SENT_MAX) this.#sent.clear();
    this.#sent.set(member.key, text);
    const session =
      member.kind === "imported"
        ? { id: member.sessionId, patch: { ...patch, updatedAt: Date.now() } }
        : null;
    return { ...at(member), record, session };
  }

  /** The session of a sub-agent whose rows stand in this file. Its place is known when the family is judged. */
  async #inside(host: Member, agentId: string, batch: ReadBatch): Promise<Member> {
    const key = inlineKey(host.key, agentId);
    const known = this.#context.catalog.members.get(key);
    const facts = batch.state.inline[agentId];
    if (known !== undefined || facts === undefined) return known ?? host;
    const judgement = { state: "unknown", reason: "not read to its end", confidence: "guess" } as const;
    const own = { cwd: batch.state.facts.cwd, callId: null, link: null, parentKey: host.key, depth: 1 };
    const told = { facts: redactFacts(facts), judgement: { ...judgement, error: null, at: null }, ...own };
    return this.#addRow(host, key, { told, status: null, missing: [] });
  }

  async #addInside(
    key: string,
    verdict: Verdict,
    known: ReadonlyMap<string, Knowledge>,
  ): Promise<Member | null> {
    const hostKey = [...known.keys()].find((each) => key.startsWith(inlineKey(each, "")));
    const host = hostKey === undefined ? undefined : this.#context.catalog.members.get(hostKey);
    return host === undefined ? null : this.#addRow(host, key, verdict);
  }

  async #addRow(host: Member, key: string, verdict: Verdict): Promise<Member> {
    const { catalog, link, options } = this.#context;
    const { agent } = this.#readingOf(host).reader;
    const { node } = options;
    const own = { key, agentId: verdict.told.facts.id, hostKey: host.key, sessionId: sessionIdOf(key) };
    const kind = host.kind === "ours" ? "imported" : host.kind;
    const member: Member = { ...host, ...own, kind, found: null, state: verdict.told.judgement.state };
    const changedAt = Math.round(host.found?.changedAt ?? Date.now());
    const { format, path, familyKey, stamp, sizeBytes, rootId } = member;
    const where = { node, agent, format, path, familyKey, stamp, sizeBytes, rootId, kind, changedAt };
    const record = { ...own, ...where, found: {}, problem: null, facts: null, status: verdict.status };
    const session = newRow(
      { ...verdict.told, ...placeIn(catalog, member, verdict), changedAt },
      { id: own.sessionId, rootId, agent, node, scope: host.scope ?? options.scope, now: Date.now() },
    );
    const [no] = await link.ask("add", [{ record, session }]);
    member.no = no as number;
    catalog.put(member);
    return member;
  }

  #readingOf({ format }: Member): Reading {
    const reading = this.#context.readings.find(({ reader }) => reader.format === format);
    if (reading === undefined) throw new Error(`nothing here reads ${format}`);
    return reading;
  }

  async #change(changes: readonly MemberChange[]): Promise<void> {
    for (const slice of slices(changes, CHANGES_MAX)) await this.#context.link.ask("change", slice);
  }
}

function at({ no, rootId }: Member): { no: number; rootId: string } {
  return { no, rootId };
}
