import type { TokenReads } from "../port/store.ts";
import { TOKEN, type TokenRecord } from "../port/record.ts";
import { reading } from "../column.ts";
import { sql, type Query } from "../sql.ts";
import { table } from "../table.ts";

export const tokens = table<TokenRecord>("tokens", TOKEN);

export function tokenReads(q: Query): TokenReads {
  const { one, many } = reading(q, tokens.record);
  return {
    outside: () =>
      many(sql`SELECT ${tokens.columns} FROM tokens WHERE kind = 'outside' ORDER BY created_at, hash`),
    byHash: (hash) => one(sql`SELECT ${tokens.columns} FROM tokens WHERE hash = ${hash}`),
  };
}

export function tokenWrites(q: Query) {
  return {
    async add(token: TokenRecord): Promise<void> {
      await q.run(tokens.insert([token]));
    },
    /** Returns false if there is no such token, or if it was revoked already. */
    async revoke(hash: string, at: number): Promise<boolean> {
      const changed = await q.run(
        sql`UPDATE tokens SET revoked_at = ${at} WHERE hash = ${hash} AND revoked_at IS NULL`,
      );
      return changed === 1;
    },
    async revokeOfSession(sessionId: string, at: number): Promise<void> {
      await q.run(sql`UPDATE tokens SET revoked_at = ${at}
        WHERE session_id = ${sessionId} AND revoked_at IS NULL`);
    },
  };
}
