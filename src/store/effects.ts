import { type Statement, sql, type Write } from './sql.ts';

export interface EffectRow {
  readonly effect_id: string;
  readonly state: 'claimed' | 'done' | 'failed';
  readonly attempts: number;
  readonly outcome: string | null;
}

export interface EffectClaim {
  readonly effectId: string;
  readonly tenant: string;
  readonly runId: string;
  readonly nodeId: string;
  readonly ordinal: number;
  readonly providerKey: string;
  readonly retentionMs: number;
}

/** Notes that an effect is about to be attempted, before it is. One that already has an outcome is left alone. */
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
    keeps: 'effect',
  };
}

export function settleEffect(tenant: string, effectId: string, state: 'done' | 'failed', outcome: string): Write {
  return {
    sql: `UPDATE effects SET state = $1, outcome = $2 WHERE effect_id = $3 AND tenant = $4 AND state = 'claimed'`,
    params: [state, outcome, effectId, tenant],
    expect: 1,
    keeps: 'effect',
  };
}

export function findEffect(tenant: string, effectId: string): Statement {
  return sql(
    'SELECT effect_id, state, attempts, outcome FROM effects WHERE effect_id = $1 AND tenant = $2',
    effectId,
    tenant,
  );
}

/** A run that is not over may come back to what it did, however long it has waited for somebody. */
export function forgetEffects(limit: number): Write {
  return {
    sql: `DELETE FROM effects WHERE effect_id IN (
            SELECT effect_id FROM effects WHERE expires_at <= $now AND NOT EXISTS (
              SELECT 1 FROM runs WHERE runs.tenant = effects.tenant AND runs.run_id = effects.run_id
                AND runs.ended_at IS NULL)
            LIMIT $1)`,
    params: [limit],
  };
}
