import { type Statement, sql, type Write } from './sql.ts';

/** The ledger's record of one external effect: claimed but without an outcome, done, or failed. */
export interface EffectRow {
  readonly effect_id: string;
  readonly state: 'claimed' | 'done' | 'failed';
  readonly attempts: number;
  readonly outcome: string | null;
}

/** The identity of an effect that is about to be attempted. */
interface EffectClaim {
  /** Does not depend on the attempt, so that a retry finds the outcome of an earlier attempt. */
  readonly effectId: string;
  readonly tenant: string;
  readonly runId: string;
  readonly nodeId: string;
  /** Position among the effects of this node. */
  readonly ordinal: number;
  /** The idempotency key that is sent to the provider. */
  readonly providerKey: string;
  readonly retentionMs: number;
}

/**
 * Records that an effect is about to be attempted, before it is. Fails the expectation `effect` if it already has an
 * outcome, which is then to be reused.
 */
export function claimEffect(claim: EffectClaim): Write {
  return {
    sql: `INSERT INTO effects (effect_id, tenant, run_id, node_id, ordinal, provider_key, state, attempts, expires_at)
          VALUES ($1, $2, $3, $4, $5, $6, 'claimed', 1, $now + $7)
          ON CONFLICT (effect_id) DO UPDATE SET attempts = effects.attempts + 1 WHERE effects.state = 'claimed'`,
    params: [
      claim.effectId,
      claim.tenant,
      claim.runId,
      claim.nodeId,
      claim.ordinal,
      claim.providerKey,
      claim.retentionMs,
    ],
    expect: 1,
    expectation: 'effect',
  };
}

/** Stores the outcome of a claimed effect. Fails the expectation `effect` if it already has one. */
export function settleEffect(tenant: string, effectId: string, state: 'done' | 'failed', outcome: string): Write {
  return {
    sql: `UPDATE effects SET state = $1, outcome = $2 WHERE effect_id = $3 AND tenant = $4 AND state = 'claimed'`,
    params: [state, outcome, effectId, tenant],
    expect: 1,
    expectation: 'effect',
  };
}

/** Finds an effect in the ledger. */
export function findEffect(tenant: string, effectId: string): Statement {
  return sql(
    'SELECT effect_id, state, attempts, outcome FROM effects WHERE effect_id = $1 AND tenant = $2',
    effectId,
    tenant,
  );
}

/**
 * Deletes expired effects, at most `limit`. Effects of live runs are kept whatever their age, because a resumed run
 * still needs them.
 */
export function deleteExpiredEffects(limit: number): Write {
  return {
    sql: `DELETE FROM effects WHERE effect_id IN (
            SELECT effect_id FROM effects WHERE expires_at <= $now AND NOT EXISTS (
              SELECT 1 FROM runs WHERE runs.tenant = effects.tenant AND runs.run_id = effects.run_id
                AND runs.ended_at IS NULL)
            LIMIT $1)`,
    params: [limit],
  };
}
