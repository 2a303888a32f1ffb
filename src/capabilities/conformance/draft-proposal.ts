import { Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf } from '../../protocol/format/schema.ts';
import { ARTIFACT_KINDS, Proposal } from '../../protocol/learning/proposals.ts';
import type { Proposals } from '../learning/proposals/door.ts';
import { reply, route, transact } from '../request.ts';

const Optional = Type.Optional;

/** Drafts are the host's own work. Where there is nothing to learn from yet, this says what was learnt. */
export const draftProposal = route<{ readonly proposals: Proposals }>()({
  operationId: 'seamDraftProposal',
  summary: 'Test seam: a proposal as if it had been learnt from runs',
  method: 'POST',
  path: '/v1/host/sample/test/proposals',
  scope: 'proposals:write',
  body: Closed({
    kind: OneOf(ARTIFACT_KINDS),
    artifact: AnyObject,
    title: Optional(Type.String()),
    rationale: Optional(Type.String()),
    sourceRunIds: Optional(Type.Array(NonEmpty)),
    evidenceKey: NonEmpty,
  }),
  replies: { 201: Proposal },
  refusals: [409, 422],
  handle: ({ caller, body: { evidenceKey: key, sourceRunIds = [], ...body } }, { proposals }) => {
    const evidence = { key, sources: sourceRunIds.map((runId) => ({ runId, why: 'a test says so' })), nearest: [] };
    return transact(
      () => proposals.draft(caller.subject, { ...body, sourceRunIds, evidence }),
      (drafted) => reply(201, drafted),
    );
  },
});
