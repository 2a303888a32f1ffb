import { createHash } from 'node:crypto';
import type { RunError } from '../../protocol/errors.ts';
import { claimEffect, type EffectRow, findEffect, settleEffect } from '../../store/effects.ts';
import { holdLease, type Lease } from '../../store/queue.ts';
import type { Store } from '../../store/store.ts';
import { redactValue } from '../../system/redaction.ts';
import { NodeFailure } from '../node-type.ts';

/** An effect that a node intends: its place in the node, not the attempt, makes it the same effect. */
export interface IntendedEffect {
  readonly tenant: string;
  readonly runId: string;
  readonly nodeId: string;
  readonly ordinal: number;
  readonly providerKey: string;
}

const RETENTION_MS = 14 * 24 * 60 * 60 * 1_000;

/** RFC 0150: the identity that stays the same however often the effect is attempted. */
export function logicalInvocationId({ tenant, runId, nodeId, ordinal, providerKey }: IntendedEffect): string {
  const fields = ['openwop:activity:v2', tenant, runId, nodeId, String(ordinal), providerKey];
  return createHash('sha256').update(fields.join('\0')).digest('base64url');
}

/**
 * Performs an effect at most once as far as anybody can know: a result that was recorded is given again, and an
 * attempt that may have got through before a crash is repeated under the same identity. A host that has lost its
 * lease cannot begin one.
 */
export async function performOnce<T>(
  store: Store,
  lease: Lease,
  effect: IntendedEffect,
  fire: (effectId: string) => Promise<T>,
): Promise<T> {
  const effectId = logicalInvocationId(effect);
  const claim = claimEffect({ ...effect, effectId, retentionMs: RETENTION_MS });
  const claimed = await store.commit([holdLease(lease, false), claim]);
  if (!claimed.committed) return claimed.broke === 'effect' ? recall<T>(store, effect.tenant, effectId) : leaseLost();
  try {
    const result = redactValue(await fire(effectId));
    await store.commit([settleEffect(effect.tenant, effectId, 'done', JSON.stringify(result ?? null))]);
    return result;
  } catch (error) {
    if (error instanceof NodeFailure && error.error.retryable === false) {
      await store.commit([settleEffect(effect.tenant, effectId, 'failed', JSON.stringify(error.error))]);
    }
    throw error;
  }
}

async function recall<T>(store: Store, tenant: string, effectId: string): Promise<T> {
  const [row] = await store.read<EffectRow>(findEffect(tenant, effectId));
  if (!row?.outcome) throw new Error(`the outcome of effect ${effectId} is missing`);
  if (row.state === 'failed') throw new NodeFailure(JSON.parse(row.outcome) as RunError);
  return JSON.parse(row.outcome) as T;
}

function leaseLost(): never {
  throw new LeaseLost('another host has taken this work over');
}

/** The work is somebody else's now. Whatever was being done for it is dropped. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}
