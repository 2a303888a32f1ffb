import { NOT_FOUND, type Refusal } from '../../protocol/errors.ts';
import type { Visibility } from '../../store/log.ts';
import type { AuditService } from '../audit/service.ts';
import type { Host } from '../capability.ts';
import type { FeedService } from '../feed/service.ts';
import { drafting } from './drafting.ts';
import { installersOf, type Places } from './installers/index.ts';
import { findProposal, listProposals, type ProposalFilter, type ProposalRow } from './records.ts';
import { tellingOf } from './telling.ts';

export type { Draft, Drafted, Evidence } from './drafting.ts';
export { type ProposalSettings, readGates } from './settings.ts';

export type ProposalService = ReturnType<typeof proposalService>;

interface Uses extends Places {
  readonly audit: Pick<AuditService, 'record'>;
  readonly feed: Pick<FeedService, 'entries' | 'wake'>;
}

/** What agents have learnt, and what people make of it. */
export function proposalService(host: Host, uses: Uses) {
  const { store } = host.runtime;
  const installers = installersOf(uses);
  const telling = tellingOf(uses);

  return {
    /** Keeps a draft, together with whatever else is to be written. Nothing happens because of it. */
    draft: drafting(host, installers, telling),

    async find(from: Visibility, proposalId: string): Promise<ProposalRow | Refusal> {
      const [row] = await store.read<ProposalRow>(findProposal(from, proposalId));
      return row ?? NOT_FOUND;
    },

    list: (from: Visibility, filter: ProposalFilter, limit: number): Promise<ProposalRow[]> =>
      store.read<ProposalRow>(listProposals(from, filter, limit)),
  };
}
