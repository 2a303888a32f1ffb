import { isRefusal } from '../../protocol/errors.ts';
import type { GoalRequest } from '../../protocol/learning/goals.ts';
import { perform } from '../../runtime/change.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { ownerOf } from '../../store/definitions.ts';
import type { Goals } from '../learning/goals/door.ts';
import { type Draft, KNOWN_EVIDENCE, type Proposals, TOO_MANY_PENDING } from '../learning/proposals/door.ts';
import type { Caller } from '../request.ts';
import { callerOf, type KeyRecord } from '../trust/authorization/door.ts';

const PROPOSED: Draft = {
  kind: 'prompt-template',
  title: 'A digest of five points',
  rationale: 'A sample, so that there is something to look at.',
  artifact: { templateId: 'conformance.sample.digest', version: '1.0.0', kind: 'user', text: 'List five points.' },
  sourceRunIds: [],
  synthesizerModel: 'host:conformance',
  evidence: { key: 'conformance-sample', sources: [], nearest: [] },
};

const AIM: GoalRequest = {
  objective: 'A sample, so that there is something to look at.',
  completion: { check: 'host' },
  continuation: { mode: 'manual' },
  bounds: { maxLoopIterations: 3 },
};

/** The services that hold sample data. */
export interface SampleServices {
  readonly proposals: Proposals;
  readonly goals: Goals;
}

/** Whether there are samples, and for whom. */
export interface SampleSettings {
  readonly samples: boolean;
  readonly apiKeys: readonly KeyRecord[];
}

/**
 * Creates a draft proposal and an active goal for every owner of a configured key, once: suites look for both, and a
 * draft cannot be created over the wire.
 */
export async function createSamples(
  runtime: Runtime,
  { proposals, goals }: SampleServices,
  { samples, apiKeys }: SampleSettings,
): Promise<void> {
  if (!samples) return;
  for (const caller of ownersOf(apiKeys)) {
    const drafted = await perform(runtime, () => proposals.draft(caller.subject, PROPOSED));
    const isKnown = drafted === KNOWN_EVIDENCE || drafted === TOO_MANY_PENDING;
    if (isRefusal(drafted) && !isKnown) throw new Error(`sample proposal: ${drafted.message}`);
    const [active] = await goals.list(caller, { state: 'active' }, 1);
    const aimed = active ?? (await perform(runtime, () => goals.create(caller, AIM)));
    if (isRefusal(aimed)) throw new Error(`sample goal: ${aimed.message}`);
  }
}

/** One caller for each tenant and workspace of the configured keys. */
function ownersOf(keys: readonly KeyRecord[]): Iterable<Caller> {
  const callers = keys.map(callerOf);
  return new Map(callers.map((caller) => [ownerOf(caller.subject), caller])).values();
}
