import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Budget, Usage } from "../contract/index.ts";
import {
  type Account,
  type Amount,
  book,
  extend,
  isReached,
  leftOf,
  meterProblem,
  limitReason,
  parkedUntil,
  priced,
  reserve,
  workedMs,
} from "./budget.ts";
import { checkProperty } from "../testing/seeds.ts";

const FLOOR = { usd: 0.05, tokens: 1_000 };
const NONE = { usd: 0, tokens: 0 };

function account(budget: Budget, fields: Partial<Account> = {}): Account {
  return { isOwn: true, budget, spent: NONE, reserved: NONE, turns: 0, ...fields };
}

function usage(fields: Partial<Usage> = {}): Usage {
  return { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd: null, ...fields };
}

describe("a turn's reservation", () => {
  const table: {
    rule: string;
    accounts: Account[];
    largest?: { usd: number; tokens: number };
    reserved: Amount;
  }[] = [
    { rule: "is nothing where no budget counts", accounts: [], reserved: { usd: null, tokens: null } },
    {
      rule: "counts only what a budget counts",
      accounts: [account({ tokens: 9_000 })],
      reserved: { usd: null, tokens: 1_000 },
    },
    {
      rule: "is at least the floor",
      accounts: [account({ usd: 2 })],
      largest: { usd: 0.01, tokens: 0 },
      reserved: { usd: 0.05, tokens: null },
    },
    {
      rule: "is one and a half times the largest turn before it",
      accounts: [account({ usd: 2, tokens: 100_000 })],
      largest: { usd: 0.4, tokens: 3_001 },
      reserved: { usd: 0.6000000000000001, tokens: 4_502 },
    },
    {
      rule: "is at most what is left",
      accounts: [account({ usd: 2 }, { spent: { usd: 1.2, tokens: 0 }, reserved: { usd: 0.7, tokens: 0 } })],
      largest: { usd: 1, tokens: 0 },
      reserved: { usd: 0.1, tokens: null },
    },
    {
      rule: "is at most what is left to any session above it",
      accounts: [
        account({ usd: 5 }),
        account({ usd: 9 }, { isOwn: false, spent: { usd: 8.98, tokens: 0 } }),
        account({ tokens: 500 }, { isOwn: false }),
      ],
      reserved: { usd: 0.02, tokens: 500 },
    },
  ];
  for (const { rule, accounts, largest = NONE, reserved } of table) {
    it(rule, () => {
      assert.deepEqual(reserve(accounts, { largest, floor: FLOOR }), { ok: true, reserved });
    });
  }
});

describe("a budget with nothing left", () => {
  const over: { rule: string; accounts: Account[]; reason: string }[] = [
    {
      rule: "says what was spent of how much",
      accounts: [account({ usd: 2 }, { spent: { usd: 2.04, tokens: 0 } })],
      reason: "it reached its limit of $2.00 (spent $2.04)",
    },
    {
      rule: "says that the family spent it",
      accounts: [account({ usd: 2 }), account({ usd: 3 }, { isOwn: false, spent: { usd: 3, tokens: 0 } })],
      reason: "it reached its limit of $3.00 (spent $3.00 with its family)",
    },
    {
      rule: "says what others hold",
      accounts: [
        account(
          { tokens: 50_000 },
          { spent: { usd: 0, tokens: 30_000 }, reserved: { usd: 0, tokens: 20_000 } },
        ),
      ],
      reason: "it reached its limit of 50k tokens (used 30k; 20k reserved by other turns)",
    },
    {
      rule: "counts turns, those below it too",
      accounts: [account({ turns: 3 }, { turns: 3 })],
      reason: "it reached its limit of 3 turns",
    },
    {
      rule: "may be one of nothing at all",
      accounts: [account({ usd: 0 })],
      reason: "it reached its limit of $0.00 (spent $0.00)",
    },
    {
      rule: "names sums below a cent",
      accounts: [account({ usd: 0.002 }, { spent: { usd: 0.0021, tokens: 0 } })],
      reason: "it reached its limit of $0.002 (spent $0.0021)",
    },
    {
      rule: "is not kept open by the dust of fractions",
      accounts: [account({ usd: 0.3 }, { spent: { usd: 0.1 + 0.2 - 1e-12, tokens: 0 } })],
      reason: "it reached its limit of $0.30 (spent $0.30)",
    },
  ];
  for (const { rule, accounts, reason } of over) {
    it(rule, () => {
      const answer = reserve(accounts, { largest: NONE, floor: FLOOR });
      assert.equal(answer.ok ? null : answer.exhausted.reason, reason);
    });
  }

  it("says minutes as people do", () => {
    assert.equal(limitReason("minutes", 30), "it reached its limit of 30 min");
    assert.equal(limitReason("minutes", 0.5), "it reached its limit of 30 s");
  });
});

describe("a turn at its reservation", () => {
  it("has reached it when it has used as much, in any unit that counts", () => {
    const used = { usd: 0.5, tokens: 10 };
    assert.equal(isReached(used, { usd: 0.5, tokens: null }), true);
    assert.equal(isReached(used, { usd: 0.6, tokens: 10 }), true);
    assert.equal(isReached(used, { usd: 0.6, tokens: 11 }), false);
    assert.equal(isReached(used, { usd: null, tokens: null }), false);
  });

  it("holds a little more where there is more", () => {
    const accounts = [account({ usd: 2, tokens: 9_000 }, { turns: 5 })];
    const answer = extend(accounts, { used: { usd: 1, tokens: 2_000 }, floor: FLOOR });
    assert.deepEqual(answer, { ok: true, reserved: { usd: 1.1, tokens: 3_000 } });
    const last = extend(accounts, { used: { usd: 1.99, tokens: 0 }, floor: FLOOR });
    assert.deepEqual(last, { ok: true, reserved: { usd: 2, tokens: 1_000 } });
  });

  it("holds all that is left where nothing was used and there is no floor", () => {
    const answer = extend([account({ usd: 2 })], { used: NONE, floor: NONE });
    assert.deepEqual(answer, { ok: true, reserved: { usd: 2, tokens: null } });
  });

  it("is over its budget where there is no more", () => {
    const answer = extend([account({ usd: 2 })], { used: { usd: 2.04, tokens: 0 }, floor: FLOOR });
    assert.equal(answer.ok ? null : answer.exhausted.reason, "it reached its limit of $2.00 (spent $2.04)");
  });

  it("is not stopped because its own beginning used up the turns", () => {
    const accounts = [account({ turns: 1, usd: 1 }, { turns: 1 })];
    assert.equal(extend(accounts, { used: { usd: 0.5, tokens: 0 }, floor: FLOOR }).ok, true);
  });
});

describe("booking", () => {
  const told = usage({ inputTokens: 100, outputTokens: 20, usd: 0.2 });
  const ended = { reported: told, metered: null, isUnsent: false, isCut: false };
  const held: Amount = { usd: 1, tokens: 500 };

  it("takes what was used, not what was held", () => {
    assert.deepEqual(book(ended, held, null), told);
  });

  it("takes the most of what was said on the way and at the end", () => {
    const metered = usage({ inputTokens: 150, usd: 0.1 });
    assert.deepEqual(
      book({ ...ended, metered }, held, null),
      usage({ inputTokens: 150, outputTokens: 20, usd: 0.2 }),
    );
  });

  it("takes the tokens that were held, marked, where only the last model call was counted", () => {
    const partial = { ...ended, isPartial: true };
    const whole = usage({ inputTokens: 480, outputTokens: 20, usd: 0.2, estimated: true });
    assert.deepEqual(book(partial, held, null), whole);
    assert.deepEqual(
      book(partial, { usd: null, tokens: null }, null),
      { ...told, estimated: true },
      "nothing was held: what was said is marked",
    );
    const free = { ...partial, reported: { ...told, usd: null } };
    assert.equal(book(free, held, { input: 1, output: 2 }).usd, 1, "a price of part of it is none");
  });

  it("takes what was held, marked, where nothing was said", () => {
    const silent = { ...ended, reported: null };
    assert.deepEqual(book(silent, held, null), usage({ inputTokens: 500, usd: 1, estimated: true }));
    assert.deepEqual(book(silent, { usd: null, tokens: null }, null), usage());
  });

  it("takes what was held, or more, where a process died in the middle", () => {
    const cut = { ...ended, reported: null, metered: told, isCut: true };
    assert.deepEqual(
      book(cut, held, null),
      usage({ inputTokens: 480, outputTokens: 20, usd: 1, estimated: true }),
    );
    assert.equal(book(cut, { usd: 0.1, tokens: null }, null).usd, 0.2);
  });

  it("takes the money that was held where only tokens were said", () => {
    const tokensOnly = { ...ended, reported: usage({ inputTokens: 100 }) };
    assert.deepEqual(
      book(tokensOnly, { usd: 1, tokens: 500 }, null),
      usage({ inputTokens: 100, usd: 1, estimated: true }),
    );
    assert.deepEqual(
      book(tokensOnly, { usd: 1, tokens: 500 }, { input: 3, output: 15 }),
      usage({ inputTokens: 100, usd: 0.0003 }),
    );
  });

  it("takes nothing for a turn of which nothing was sent", () => {
    assert.deepEqual(book({ ...ended, reported: null, isUnsent: true, isCut: true }, held, null), usage());
  });
});

describe("money", () => {
  it("is what the agent says, else its tokens at the model's price, cached ones at theirs", () => {
    const price = { input: 3, cached: 0.3, output: 15 };
    const used = usage({ inputTokens: 1_000_000, cachedTokens: 400_000, outputTokens: 100_000 });
    assert.equal(priced(used, price).usd, 1 * 3 + 0.4 * 0.3 + 0.1 * 15);
    assert.equal(priced({ ...used, usd: 9 }, price).usd, 9);
    assert.equal(priced(used, null).usd, null);
  });

  const agent = (cost: "usd" | "tokens" | "none") => ({ name: "x", cost, model: "m" });
  const table: [Budget, "usd" | "tokens" | "none", boolean, RegExp | null][] = [
    [{ usd: 1 }, "usd", false, null],
    [{ usd: 1 }, "tokens", true, null],
    [{ usd: 1 }, "tokens", false, /the model "m" has no price/],
    [{ usd: 1 }, "none", true, /does not report what it costs/],
    [{ tokens: 1 }, "tokens", false, null],
    [{ tokens: 1 }, "none", false, /does not report the tokens/],
    [{ turns: 1, minutes: 1 }, "none", false, null],
  ];
  for (const [limits, cost, hasPrice, problem] of table) {
    it(`${JSON.stringify(limits)} with an agent that reports ${cost}${hasPrice ? " and a price" : ""}`, () => {
      const found = meterProblem(limits, agent(cost), hasPrice);
      if (problem === null) assert.equal(found, null);
      else assert.match(found ?? "", problem);
    });
  }
});

describe("wall time", () => {
  it("does not run while a person is asked, however the questions overlap, nor while nobody was awake", () => {
    const asked = [
      { from: 200, to: 300 },
      { from: 250, to: 400 },
      { from: 0, to: 120 },
      { from: 900, to: null },
      { from: 500, to: 500 },
    ];
    assert.equal(workedMs({ openedAt: 100, now: 1_000, pausedMs: 50, asked }), 900 - 20 - 200 - 100 - 50);
    assert.equal(workedMs({ openedAt: 100, now: 100, pausedMs: 50, asked: [] }), 0);
  });

  it("a parked session goes on at the reset or a little later, never after six hours", () => {
    const at = { now: 1_000, longestMs: 21_600_000, jitterMs: 30_000, chance: 0.5 };
    assert.equal(parkedUntil({ ...at, resetAt: 61_000 }), 76_000);
    assert.equal(parkedUntil({ ...at, resetAt: 10 * 21_600_000 }), 21_601_000);
    assert.ok(parkedUntil({ ...at, resetAt: 0, chance: 0 }) > at.now);
  });
});

describe("whatever happens", () => {
  const amounts = fc.record({
    usd: fc.integer({ min: 0, max: 5_000 }).map((cents) => cents / 100),
    tokens: fc.integer({ min: 0, max: 100_000 }),
  });
  const budgets: fc.Arbitrary<Budget> = fc.record(
    {
      usd: fc.integer({ min: 0, max: 5_000 }).map((cents) => cents / 100),
      tokens: fc.integer({ min: 0, max: 100_000 }),
      turns: fc.integer({ min: 1, max: 9 }),
    },
    { requiredKeys: [] },
  );
  const accounts: fc.Arbitrary<Account[]> = fc.array(
    fc.record({
      isOwn: fc.boolean(),
      budget: budgets,
      spent: amounts,
      reserved: amounts,
      turns: fc.integer({ min: 0, max: 9 }),
    }),
    { maxLength: 6 },
  );

  it("no reservation is larger than what is left anywhere above, and none is made of nothing", () => {
    checkProperty(
      import.meta.filename,
      fc.property(accounts, amounts, amounts, (all, largest, floor) => {
        const answer = reserve(all, { largest, floor });
        for (const unit of ["usd", "tokens"] as const) {
          const left = leftOf(all, unit);
          if (!answer.ok) continue;
          assert.equal(answer.reserved[unit] === null, left === null);
          if (left === null) continue;
          assert.ok(left > 0);
          assert.ok(answer.reserved[unit]! <= left);
        }
      }),
    );
  });

  it("a turn that may go on holds more than it has used, and never more than its budgets", () => {
    checkProperty(
      import.meta.filename,
      fc.property(accounts, amounts, amounts, (all, used, floor) => {
        const answer = extend(all, { used, floor });
        if (!answer.ok) return;
        assert.equal(isReached(used, answer.reserved), false);
        for (const unit of ["usd", "tokens"] as const) {
          const left = leftOf(all, unit);
          if (left !== null) assert.ok(answer.reserved[unit]! <= left);
        }
      }),
    );
  });

  it("what is booked is never less than what was said, nor less than what was held where it is unknown", () => {
    const said = fc.option(
      amounts.map((each) => usage({ inputTokens: each.tokens, usd: each.usd })),
      { nil: null },
    );
    checkProperty(
      import.meta.filename,
      fc.property(said, said, amounts, fc.boolean(), (reported, metered, held, isCut) => {
        const booked = book({ reported, metered, isUnsent: false, isCut }, held, null);
        for (const each of [reported, metered]) {
          assert.ok(booked.inputTokens >= (each?.inputTokens ?? 0));
          assert.ok((booked.usd ?? 0) >= (each?.usd ?? 0) - 1e-9);
        }
        if (!isCut && (reported !== null || metered !== null)) return;
        assert.equal(booked.estimated, true);
        assert.ok(booked.inputTokens >= held.tokens && (booked.usd ?? 0) >= held.usd - 1e-9);
      }),
    );
  });
});
