import { createHash } from 'node:crypto';
import type { RunError } from '../../protocol/errors.ts';
import { claimEffect, type EffectRow, findEffect, settleEffect } from '../../store/effects.ts';
import { guardLease, type Lease } from '../../store/queue.ts';
import type { Write } from '../../store/sql.ts';
import type { Store } from '../../store/store.ts';
import { redactValue } from '../../system/redaction.ts';
import { NodeFailure } from '../node-type.ts';

/** An effect that a node intends, identified by its place in the node: every attempt has the same one. */
export interface IntendedEffect {
  readonly tenant: string;
  readonly runId: string;
  readonly nodeId: string;
  readonly ordinal: number;
  readonly providerKey: string;
}

const RETENTION_MS = 14 * 24 * 60 * 60 * 1_000;

/** Upper bound of effects in one visit; it keeps the ordinals of visits apart. */
export const EFFECTS_PER_VISIT = 1_000_000;

/** Identifies the effects of a node's own code, which may start several at once: their names tell them apart. */
export function namedEffect(visit: number, name: string, count = 0): Pick<IntendedEffect, 'ordinal' | 'providerKey'> {
  return { ordinal: visit * EFFECTS_PER_VISIT + count, providerKey: `step:${name}` };
}

/** The effect id, the same for every attempt (RFC 0150). */
export function logicalInvocationId({ tenant, runId, nodeId, ordinal, providerKey }: IntendedEffect): string {
  const fields = ['openwop:activity:v2', tenant, runId, nodeId, String(ordinal), providerKey];
  return createHash('sha256').update(fields.join('\0')).digest('base64url');
}

/** Where the effects of a run are claimed and settled. */
export interface EffectLedger {
  readonly store: Store;
  readonly lease: Lease;
  /** Adds an outcome to what the run commits next; without it an outcome is committed by itself. */
  readonly recordOutcome?: (outcome: Write) => void;
}

/** What an attempt does. */
export interface EffectAttempt<T> {
  readonly signal: AbortSignal;
  /** Settles once everything before the effect is committed; undefined if it is. */
  readonly committed?: Promise<void> | undefined;
  readonly fire: (effectId: string) => Promise<T>;
}

/**
 * Performs an effect and records its result. A recorded result is returned without performing the effect again; an
 * attempt that a crash interrupted is repeated under the same effect id, so that the receiver can recognise it. A host
 * that has lost its lease cannot begin an effect. A failure after `signal` was aborted is not recorded, because the abort
 * may have caused it; a result is, because the effect has happened. If another attempt was first, its outcome is the one
 * that counts.
 */
export async function performOnce<T>(
  ledger: EffectLedger,
  effect: IntendedEffect,
  { signal, committed, fire }: EffectAttempt<T>,
): Promise<T> {
  const { store, lease } = ledger;
  const effectId = logicalInvocationId(effect);
  // Both at once: most of the time they share a transaction.
  const [claimed] = await Promise.all([store.commit([guardLease(lease, false), claimOf(effect)]), committed]);
  if (!claimed.committed)
    return claimed.failedExpectation === 'effect' ? recall<T>(store, effect.tenant, effectId) : leaseLost();
  const isFirst = (state: 'done' | 'failed', outcome: unknown): boolean | Promise<boolean> =>
    settle(ledger, settleEffect(effect.tenant, effectId, state, JSON.stringify(outcome ?? null)), signal);
  let result: T;
  try {
    result = redactValue(await fire(effectId));
  } catch (error) {
    const isFinal = error instanceof NodeFailure && error.error.retryable === false && !signal.aborted;
    if (!isFinal || (await isFirst('failed', error.error))) throw error;
    return recall(store, effect.tenant, effectId);
  }
  return (await isFirst('done', result)) ? result : recall(store, effect.tenant, effectId);
}

/**
 * Stores an outcome, and says whether it is the first one. What an attempt records in the run is committed only together
 * with its outcomes, so it goes on at once; an aborted one records nothing more.
 */
function settle(
  { store, recordOutcome }: EffectLedger,
  outcome: Write,
  signal: AbortSignal,
): boolean | Promise<boolean> {
  if (!recordOutcome || signal.aborted) return store.commit([outcome]).then(({ committed }) => committed);
  recordOutcome(outcome);
  return true;
}

/** The write that claims an effect; it fails the expectation `effect` if there is an outcome already. */
export function claimOf(effect: IntendedEffect): Write {
  return claimEffect({ ...effect, effectId: logicalInvocationId(effect), retentionMs: RETENTION_MS });
}

async function recall<T>(store: Store, tenant: string, effectId: string): Promise<T> {
  const [row] = await store.read<EffectRow>(findEffect(tenant, effectId));
  // With the run, its effects are gone.
  if (!row) return leaseLost();
  if (!row.outcome) throw new Error(`effect ${effectId} is settled without an outcome`);
  if (row.state === 'failed') throw new NodeFailure(JSON.parse(row.outcome) as RunError);
  return JSON.parse(row.outcome) as T;
}

function leaseLost(): never {
  throw new LeaseLost('another host has taken this work over');
}

/** Another host has the lease now: this host must drop the work. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}
