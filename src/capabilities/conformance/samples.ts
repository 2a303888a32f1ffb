import { isRefusal } from '../../protocol/errors.ts';
import type { GoalRequest } from '../../protocol/learning/goals.ts';
import { perform } from '../../runtime/change.ts';
import { ownerOf } from '../../store/definitions.ts';
import type { GoalService } from '../learning/goals/service.ts';
import { type Draft, KNOWN_EVIDENCE, type Proposals, TOO_MANY_PENDING } from '../learning/proposals/door.ts';
import type { CapabilitySettings, LegacyHost } from '../legacy.ts';
import type { Caller } from '../request.ts';
import { callerOf } from '../trust/authorization/door.ts';

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

interface Sampled {
  readonly proposals: Proposals;
  readonly goals: GoalService;
}

/**
 * Suites look for a draft, which nobody can make from outside, and for a goal that is active: whoever has a configured
 * key gets one of each, once.
 */
export async function giveSamples(
  { runtime, settings }: Pick<LegacyHost, 'runtime' | 'settings'>,
  { proposals, goals }: Sampled,
): Promise<void> {
  if (!settings.samples) return;
  for (const caller of ownersAmong(settings)) {
    const drafted = await perform(runtime, () => proposals.draft(caller.subject, PROPOSED));
    const isKnown = drafted === KNOWN_EVIDENCE || drafted === TOO_MANY_PENDING;
    if (isRefusal(drafted) && !isKnown) throw new Error(`sample proposal: ${drafted.message}`);
    const [active] = await goals.list(caller, { state: 'active' }, 1);
    const aimed = active ?? (await goals.create(caller, AIM, () => []));
    if (isRefusal(aimed)) throw new Error(`sample goal: ${aimed.message}`);
  }
}

/** One for each tenant, and each workspace of it, that configured keys are of. */
function ownersAmong({ configuredKeys }: CapabilitySettings): Iterable<Caller> {
  const callers = configuredKeys.map(callerOf);
  return new Map(callers.map((caller) => [ownerOf(caller.subject), caller])).values();
}
