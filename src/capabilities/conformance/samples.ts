import { isRefusal } from '../../protocol/errors.ts';
import type { Subject } from '../../runtime/run-row.ts';
import { ownerOf } from '../../store/definitions.ts';
import { callerOf } from '../authorization/keys.ts';
import type { CapabilitySettings } from '../capability.ts';
import type { Draft, ProposalService } from '../proposals/service.ts';

const PROPOSED: Draft = {
  kind: 'prompt-template',
  title: 'A digest of five points',
  rationale: 'A sample, so that there is something to look at.',
  artifact: { templateId: 'conformance.sample.digest', version: '1.0.0', kind: 'user', text: 'List five points.' },
  sourceRunIds: [],
  synthesizerModel: 'host:conformance',
  evidence: { key: 'conformance-sample', sources: [], nearest: [] },
};

/** Suites look for a draft that nobody can make from outside: whoever has a configured key gets one, once. */
export async function giveSamples(settings: CapabilitySettings, proposals: ProposalService): Promise<void> {
  if (!settings.samples) return;
  for (const subject of ownersAmong(settings)) {
    const drafted = await proposals.draft(subject, PROPOSED);
    if (isRefusal(drafted)) throw new Error(`sample proposal: ${drafted.message}`);
  }
}

/** One for each tenant, and each workspace of it, that configured keys are of. */
function ownersAmong({ configuredKeys }: CapabilitySettings): Iterable<Subject> {
  const subjects = configuredKeys.map((key) => callerOf(key).subject);
  return new Map(subjects.map((subject) => [ownerOf(subject), subject])).values();
}
