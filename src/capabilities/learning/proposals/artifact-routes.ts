import { isRefusal } from '../../../protocol/errors.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { InstalledArtifact, InstalledArtifactSummary, ProposalEvidence } from '../../../protocol/learning/proposals.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { NO_CONTENT, reply, route, transact } from '../../request.ts';
import { evidenceOf, installedSummary } from './document.ts';
import { ProposalParams, shownTo } from './routes.ts';
import type { ProposalService } from './service.ts';

const operation = route<{ readonly proposals: ProposalService }>();
const HOST = '/v1/host/capstan';

const evidence = operation({
  operationId: 'getProposalEvidence',
  summary: 'The evidence for a proposal: revisions with diffs, the open gate, source runs, similar artifacts',
  method: 'GET',
  path: `${HOST}/proposals/{proposalId}/evidence`,
  scope: 'proposals:read',
  params: ProposalParams,
  replies: { 200: ProposalEvidence },
  refusals: [404],
  handle: async ({ caller, params }, { proposals }) => {
    const details = await proposals.details(caller.subject, params.proposalId);
    if (isRefusal(details)) return details;
    return shownTo(caller, [details.row], proposals, reply(200, evidenceOf(details)));
  },
});

const listInstalled = operation({
  operationId: 'listInstalledArtifacts',
  summary: 'Artifacts that applied proposals installed, newest first',
  method: 'GET',
  path: `${HOST}/artifacts/installed`,
  scope: 'proposals:read',
  query: ListQuery({}),
  replies: { 200: Page(InstalledArtifactSummary) },
  refusals: [400],
  handle: async ({ caller, query }, { proposals }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const rows = await proposals.installedSummaries(caller.subject, page.after, page.limit + 1);
    return reply(
      200,
      pageOf(rows, page, installedSummary, ({ ref }) => ref),
    );
  },
});

const ArtifactParams = Closed({ ref: NonEmpty });

const getInstalled = operation({
  operationId: 'getInstalledArtifact',
  summary: 'An artifact that an applied proposal installed, with its exact text',
  method: 'GET',
  path: `${HOST}/artifacts/installed/{ref}`,
  scope: 'proposals:read',
  params: ArtifactParams,
  replies: { 200: InstalledArtifact },
  refusals: [404],
  handle: async ({ caller, params }, { proposals }) => {
    const row = await proposals.findInstalled(caller.subject, params.ref);
    return isRefusal(row) ? row : reply(200, { ...installedSummary(row), text: row.text });
  },
});

const uninstall = operation({
  operationId: 'uninstallArtifact',
  summary: 'Uninstall an artifact that a proposal installed, and restore what it replaced',
  method: 'DELETE',
  path: `${HOST}/artifacts/installed/{ref}`,
  scope: 'proposals:activate',
  params: ArtifactParams,
  replies: { 204: 'nothing' },
  refusals: [404, 409],
  handle: ({ caller, params }, { proposals }) =>
    transact(
      () => proposals.uninstall(caller, params.ref),
      () => NO_CONTENT,
    ),
});

/** Operations that the protocol does not have: the evidence of proposals, and what they installed. */
export const artifactRoutes = [evidence, listInstalled, getInstalled, uninstall];
