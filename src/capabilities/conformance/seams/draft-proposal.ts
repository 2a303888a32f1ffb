import { Type } from 'typebox';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { AnyObject, Closed, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import { ARTIFACT_KINDS, Proposal } from '../../../protocol/learning/proposals.ts';
import type { Proposals } from '../../learning/proposals/door.ts';
import { reply, route, transact } from '../../request.ts';

const Optional = Type.Optional;

/** Drafts a proposal as synthesis would; suites have no runs to learn from. */
export const draftProposal = route<{ readonly proposals: Proposals | undefined }>()({
  operationId: 'seamDraftProposal',
  summary: 'Test seam: draft a proposal as synthesis would',
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
  refusals: [404, 409, 422],
  handle: ({ caller, body: { evidenceKey: key, sourceRunIds = [], ...body } }, { proposals }) => {
    if (!proposals) return NOT_FOUND;
    const evidence = { key, sources: sourceRunIds.map((runId) => ({ runId, why: 'a test says so' })), nearest: [] };
    return transact(
      () => proposals.draft(caller.subject, { ...body, sourceRunIds, evidence }),
      (drafted) => reply(201, drafted),
    );
  },
});
