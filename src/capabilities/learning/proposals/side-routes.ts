import { isRefusal } from '../../../protocol/errors.ts';
import { defined } from '../../../protocol/format/json.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { InstalledArtifact, InstalledArtifactSummary, ProposalEvidence } from '../../../protocol/learning/proposals.ts';
import { REVIEW } from '../../../runtime/management.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { type Reply, reply, route } from '../../request.ts';
import { timestamp } from '../../timestamps.ts';
import { factsOf } from './document.ts';
import type { InstalledRow } from './records.ts';
import { ProposalParams } from './routes.ts';
import type { OpenGate, ProposalService, SideRecord } from './service.ts';
import { diffOfTexts } from './text-diff.ts';

const operation = route<{ readonly proposals: ProposalService }>();
const HOST = '/v1/host/capstan';
/** Who drafts, where nobody does by name. */
const DRAFTER = 'host';

const evidence = operation({
  operationId: 'getProposalEvidence',
  summary: 'Why something is proposed, and what became of it: revisions with diffs, the open gate, sources, neighbours',
  method: 'GET',
  path: `${HOST}/proposals/{proposalId}/evidence`,
  scope: 'proposals:read',
  params: ProposalParams,
  replies: { 200: ProposalEvidence },
  refusals: [404],
  handle: async ({ caller, params }, { proposals }) => {
    const record = await proposals.sideRecord(caller.subject, params.proposalId);
    return isRefusal(record) ? record : reply(200, evidenceOf(record));
  },
});

function evidenceOf({ row, revisions, gate, obstacle, preview, replaced }: SideRecord): object {
  const { sources, nearest, rejectReason } = factsOf(row);
  return defined({
    proposalId: row.proposal_id,
    artifactHash: row.sha256,
    runId: row.run_id,
    revisions: revisions.map(({ at, author, sha256, text, note }, index) =>
      defined({
        at: timestamp(at),
        by: author ?? DRAFTER,
        hash: sha256,
        diff: diffOfTexts(revisions[index - 1]?.text, text),
        note: note ?? undefined,
      }),
    ),
    change: replaced === undefined ? undefined : diffOfTexts(replaced, row.text),
    gate: gate && gateShown(gate),
    obstacle: obstacle && { message: obstacle.message, ...obstacle.details },
    rejectReason,
    sources,
    nearest,
    preview,
    uninstalledAt: row.uninstalled_at === null ? undefined : timestamp(row.uninstalled_at),
  });
}

function gateShown({ approvalId, requestedAt, expiresAt, data, grantedBy }: OpenGate): object {
  const { artifactHash, requiredScope, requiredRole, quorum } = data;
  return defined({
    approvalId,
    nodeId: REVIEW,
    artifactHash,
    requiredScope,
    requiredRole,
    quorum,
    grantedBy,
    requestedAt: timestamp(requestedAt),
    expiresAt: expiresAt === undefined ? undefined : timestamp(expiresAt),
  });
}

const listInstalled = operation({
  operationId: 'listInstalledArtifacts',
  summary: 'What applied proposals have put into use, newest first',
  method: 'GET',
  path: `${HOST}/artifacts/installed`,
  scope: 'proposals:read',
  query: ListQuery({}),
  replies: { 200: Page(InstalledArtifactSummary) },
  refusals: [400],
  handle: async ({ caller, query }, { proposals }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const rows = await proposals.installed(caller.subject, page.after, page.limit + 1);
    return reply(
      200,
      pageOf(rows, page, summaryOf, ({ ref }) => ref),
    );
  },
});

const ArtifactParams = Closed({ ref: NonEmpty });

const getInstalled = operation({
  operationId: 'getInstalledArtifact',
  summary: 'What an applied proposal has put into use, to the letter',
  method: 'GET',
  path: `${HOST}/artifacts/installed/{ref}`,
  scope: 'proposals:read',
  params: ArtifactParams,
  replies: { 200: InstalledArtifact },
  refusals: [404],
  handle: async ({ caller, params }, { proposals }) => {
    const row = await proposals.findInstalled(caller.subject, params.ref);
    return isRefusal(row) ? row : reply(200, { ...summaryOf(row), text: row.text });
  },
});

const uninstall = operation({
  operationId: 'uninstallArtifact',
  summary: 'Take back what a proposal has put into use; what was there before is there again',
  method: 'DELETE',
  path: `${HOST}/artifacts/installed/{ref}`,
  scope: 'proposals:activate',
  params: ArtifactParams,
  replies: { 204: 'nothing' },
  refusals: [404, 409],
  handle: async (request, { proposals }) => {
    const done: Reply = { status: 204 };
    return (await proposals.uninstall(request.caller, request.params.ref, () => request.remember(done))) ?? done;
  },
});

function summaryOf(row: InstalledRow): object {
  return defined({
    ref: row.ref,
    kind: row.kind,
    proposalId: row.proposal_id,
    sha256: row.sha256,
    installedAt: timestamp(row.installed_at),
    installedBy: row.installed_by,
    replaces: row.replaces ?? undefined,
  });
}

export const sideRoutes = [evidence, listInstalled, getInstalled, uninstall];
