import { Packs } from '../../ai/packs/door.ts';
import { Prompts } from '../../ai/prompts/door.ts';
import { defineCapability } from '../../capability.ts';
import { Feed } from '../../operations/feed/door.ts';
import { InboxSources } from '../../people/inbox/door.ts';
import { AnswerDeciders, InterruptLinks } from '../../people/interrupts/door.ts';
import { bindRoutes } from '../../request.ts';
import { Schedules } from '../../starting/schedules/door.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Verifiers } from '../verifiers/door.ts';
import { GATE_TIMEOUT } from './activation.ts';
import { artifactRoutes } from './artifact-routes.ts';
import { Proposals } from './door.ts';
import { pendingProposals, proposalLinks } from './inbox.ts';
import { PROPOSAL_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { ProposalService } from './service.ts';
import { proposalSettings } from './settings.ts';
import { proposalsWhenOff } from './when-off.ts';
import { gateTimeoutHandler } from './work.ts';

/** What was learnt from runs: without effect until a person applies it. */
export const proposals = defineCapability({
  name: 'proposals',
  provides: Proposals,
  needs: [Audit, Feed, Prompts, Packs, Schedules, Verifiers],
  settings: proposalSettings,
  tables: PROPOSAL_TABLES,
  build: (host, needs, { proposals: settings }) => {
    const { runtime } = host;
    if (settings.isOff) return proposalsWhenOff(runtime.clock);
    const service = new ProposalService(host, needs, settings);
    return {
      service,
      // Which kinds there are is what synthesis can draft.
      advertise: () => ({ agents: { proposals: { activation: settings.activation } } }),
      routes: bindRoutes([...routes, ...artifactRoutes], { proposals: service }),
      work: { [GATE_TIMEOUT]: { handle: gateTimeoutHandler(runtime, service.activation) } },
      extensions: [
        AnswerDeciders.of(service.answerDecider),
        InboxSources.of(pendingProposals(runtime.store)),
        InterruptLinks.of(proposalLinks(runtime.store)),
      ],
    };
  },
});
