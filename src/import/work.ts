import type { ReadBatch } from "../history/port.ts";
import { type Knowledge, type Member, recordChange, storedFields } from "./catalog.ts";
import type { Context, Reading } from "./context.ts";
import { inlineKey, sessionIdOf } from "./identity.ts";
import { lineageIn, type Verdict } from "./judge.ts";
import { asError } from "../system/error.ts";
import { ThreadRpcError } from "../system/thread-rpc.ts";
import { judgeNow, noticeGrowth } from "./live-list.ts";
import type { MemberChange } from "./thread/protocol.ts";
import { PrefixFilter } from "./shared-prefix.ts";
import { newSession, scopeOf } from "./add-found.ts";
import { Outbox } from "./thread/outbox.ts";
import { type ReadRequest, readMember, recordOf } from "./read.ts";
import { RewrittenFiles, refsOf } from "./rewritten-file.ts";
import { whySetAside } from "./thread/restarts.ts";
import { redactFacts, rowPatch } from "./row.ts";
import { slices } from "./slice.ts";

/** Maximum number of sessions whose last change is remembered. */
const SENT_MAX = 20_000;
const CHANGES_MAX = 16;
const LONG_BYTES = 8 * 1024 * 1024;

export class Work {
  readonly #context: Context;
  /** The last change sent to the store, by member key. An equal change is not sent again. */
  readonly #sent = new Map<string, string>();
  readonly #rewritten: RewrittenFiles;
  readonly #prefixFilters = new Map<string, PrefixFilter>();
  #long: Promise<unknown> = Promise.resolve();

  constructor(context: Context) {
    this.#context = context;
    this.#rewritten = new RewrittenFiles(context.rpc);
  }

  read(familyKey: string, members: readonly Member[], isLive: boolean): Promise<void> {
    return this.#together(familyKey, async (known, outbox) => {
      for (const member of members) await this.#readOne(member, { known, isLive, outbox });
    });
  }

  judge(familyKey: string): Promise<void> {
    return this.#together(familyKey, async () => undefined);
  }

  /** If the work fails, drops what is known about the family, so that its files are read again. */
  #together(
    familyKey: string,
    work: (known: Map<string, Knowledge>, outbox: Outbox) => Promise<void>,
  ): Promise<void> {
    const { catalog, rpc, signal } = this.#context;
    return catalog.alone(familyKey, async () => {
      const outbox = new Outbox(rpc);
      const stamps = catalog.family(familyKey).map((member) => ({ member, ...member }));
      try {
        const known = await catalog.knowledge(familyKey);
        await work(known, outbox);
        if (!signal.aborted) await this.#judge(familyKey, known, outbox);
        await outbox.settle();
      } catch (error) {
        catalog.forget(familyKey);
        for (const { member, readStamp, readBytes } of stamps)
          Object.assign(member, { readStamp, readBytes });
        for (const { key } of catalog.family(familyKey)) {
          this.#sent.delete(key);
          this.#rewritten.forget(key);
        }
        // `error` is thrown below. A failure here is only its consequence, so it is ignored.
        await outbox.settle().catch(() => undefined);
        throw error;
      }
    });
  }

  async #readOne(
    member: Member,
    { known, isLive, outbox }: { known: Map<string, Knowledge>; isLive: boolean; outbox: Outbox },
  ): Promise<void> {
    const { progress, signal } = this.#context;
    if (signal.aborted) return;
    const { stamp, readBytes } = member;
    const request = {
      member,
      reader: this.#readingOf(member).reader,
      known: known.get(member.key),
      isLive,
      signal,
      inside: (agentId: string, batch: ReadBatch) => this.#inside(member, agentId, batch),
      rewritten: this.#rewritten,
      prefixFilter: await this.#prefixFilterOf(member),
      onBytes: () => progress.publish(),
    };
    const isLong = member.sizeBytes - readBytes > LONG_BYTES;
    const read = await this.#readFile(outbox, request, isLong).catch((error: unknown) => {
      if (error instanceof ThreadRpcError || signal.aborted) throw error;
      return asError(error);
    });
    member.readStamp = stamp;
    progress.publish();
    // A file that cannot be read is retried when it changes; everything else continues.
    if (read instanceof Error) {
      await outbox.change([recordChange(member, { problem: read.message, readStamp: stamp })]);
      return;
    }
    if (read !== null) known.set(member.key, read);
    if (isLive && member.readBytes > readBytes) {
      await noticeGrowth(this.#context, member, { known, readBytes, reading: this.#readingOf(member) });
    }
    const kept = { readStamp: stamp, readBytes: member.readBytes, problem: null };
    const record = { ...(read === null ? {} : recordOf(read)), ...kept };
    await outbox.change([recordChange(member, record)]);
  }

  /**
   * If this session continues another one, reads that one first. This cannot deadlock: that one continues no
   * other session, so it waits for none.
   */
  async #prefixFilterOf(member: Member): Promise<PrefixFilter | null> {
    const { sharedPrefixes, catalog, rpc } = this.#context;
    const kept = this.#prefixFilters.get(member.key);
    if (kept !== undefined) return kept;
    const owner = catalog.members.get(sharedPrefixes.ownerOf(member.key) ?? "");
    if (owner === undefined || owner.kind !== "imported" || owner.key === member.key) return null;
    if (owner.readStamp === null) await this.read(owner.familyKey, [owner], false);
    const filter = new PrefixFilter(await refsOf(rpc, owner.no), owner.sessionId);
    this.#prefixFilters.set(member.key, filter);
    return filter;
  }

  async #readFile(outbox: Outbox, request: ReadRequest, isLong: boolean): Promise<Knowledge | null> {
    const { tasks, setAside } = this.#context;
    const reason = whySetAside(setAside, request.member);
    if (reason !== null) throw new Error(reason);
    const read = () => tasks.run(request.member, () => readMember(outbox, request));
    return isLong ? this.#oneAtATime(read) : read();
  }

  /** Reads large files one at a time: two of the longest lines at once would take too much memory. */
  #oneAtATime<T>(work: () => Promise<T>): Promise<T> {
    const own = this.#long.then(work);
    // The caller gets the error through `own`; the next read only waits until this one has ended.
    this.#long = own.catch(() => undefined);
    return own;
  }

  async #judge(familyKey: string, known: Map<string, Knowledge>, outbox: Outbox): Promise<void> {
    const { catalog } = this.#context;
    const [some] = catalog.family(familyKey);
    if (some === undefined) return;
    const reading = this.#readingOf(some);
    const verdicts = await judgeNow(this.#context, { familyKey, known, reading });
    const changes: MemberChange[] = [];
    for (const [key, verdict] of verdicts) {
      const member = catalog.members.get(key) ?? (await this.#addInside(key, verdict, known));
      const change = member === null ? null : this.#news(member, verdict, reading);
      if (change !== null) changes.push(change);
    }
    for (const slice of slices(changes, CHANGES_MAX)) await outbox.change(slice);
  }

  /** Returns null if the same change was already sent to the store. */
  #news(member: Member, verdict: Verdict, { reader }: Reading): MemberChange | null {
    const { options, catalog } = this.#context;
    const lineage = lineageIn(catalog, member, verdict);
    const row = { ...verdict.row, ...lineage, changedAt: member.found?.changedAt ?? Date.now() };
    const { agent } = reader;
    const cwd = row.facts.cwd ?? row.cwd ?? member.cwd;
    Object.assign(member, { ...lineage, cwd, state: row.judgement.state });
    const patch = rowPatch(row, { agent, node: options.node, now: 0 });
    const record = {
      status: verdict.status,
      missing: verdict.missing.length === 0 ? null : [...verdict.missing],
    };
    const text = JSON.stringify([patch, record]);
    if (this.#sent.get(member.key) === text) return null;
    if (this.#sent.size > SENT_MAX) this.#sent.clear();
    this.#sent.set(member.key, text);
    const isImported = member.kind === "imported";
    const session = isImported ? { id: member.sessionId, patch: { ...patch, updatedAt: Date.now() } } : null;
    return { ...recordChange(member, record), session };
  }

  /** Returns the session of a sub-agent in this file; adds a new one. `#judge` sets its lineage later. */
  async #inside(host: Member, agentId: string, batch: ReadBatch): Promise<Member> {
    const key = inlineKey(host.key, agentId);
    const known = this.#context.catalog.members.get(key);
    if (known !== undefined) return known;
    const state = batch.state();
    const facts = state.inline[agentId];
    if (facts === undefined) return host;
    const judgement = { state: "unknown", reason: "not read to its end", confidence: "guess" } as const;
    const own = { cwd: state.facts.cwd, callId: null, link: null, parentKey: host.key, depth: 1 };
    const row = { facts: redactFacts(facts), judgement: { ...judgement, error: null, at: null }, ...own };
    return this.#addRow(host, key, { row, status: null, missing: [] });
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
    const { catalog, rpc, options } = this.#context;
    const { agent } = this.#readingOf(host).reader;
    const own = { key, agentId: verdict.row.facts.id, hostKey: host.key, sessionId: sessionIdOf(key) };
    const kind = host.kind === "ours" ? "imported" : host.kind;
    const member: Member = { ...host, ...own, kind, found: null };
    const changedAt = Math.round(host.found?.changedAt ?? Date.now());
    const scope = scopeOf(this.#context, { facts: { cwd: host.cwd }, known: host.scope });
    const session = newSession(this.#context, member, { verdict, agent, scope, changedAt });
    const unread = { found: {}, problem: null, facts: null, status: verdict.status };
    const record = { ...storedFields(member), ...unread, node: options.node, agent, changedAt };
    const [no] = await rpc.ask("add", [{ record, session }]);
    member.no = no as number;
    catalog.put(member);
    return member;
  }

  #readingOf({ format }: Member): Reading {
    const reading = this.#context.readings.find(({ reader }) => reader.format === format);
    if (reading === undefined) throw new Error(`no reader for the format ${format}`);
    return reading;
  }
}
