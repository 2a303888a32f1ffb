import { Type } from 'typebox';
import { OneOf } from '../../../protocol/format/schema.ts';
import { COMMITMENT_STATES, Commitment, CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { answerPageById, ListQuery, Page } from '../../page.ts';
import { type Route, route } from '../../request.ts';
import { starterRoutes, switchRoutes } from '../starter/routes.ts';
import type { Commitments } from './door.ts';

/** What the handlers use. */
interface Services {
  readonly starters: Commitments;
}
const operation = route<Services>();

const family = {
  noun: 'Commitment',
  path: '/v1/host/capstan/commitments',
  request: CommitmentRequest,
  document: Commitment,
  summaries: {
    create: 'Create a commitment that runs a workflow once a time has come or a predicate is true',
    get: 'A commitment, with its outcome',
    delete: 'Remove a commitment; a run that has started continues',
  },
} as const;
const common = starterRoutes<CommitmentRequest, Commitment>(family);

const listCommitments = operation({
  operationId: 'listCommitments',
  summary: 'Commitments, newest first',
  method: 'GET',
  path: family.path,
  scope: 'manifest:read',
  query: ListQuery({ state: Type.Optional(OneOf(COMMITMENT_STATES)) }),
  replies: { 200: Page(Commitment) },
  refusals: [400],
  handle: ({ caller, query }, { starters }) => {
    const { state } = query;
    return answerPageById(query, (before, limit) => starters.list(caller, { state, before }, limit));
  },
});

/** The operations on commitments. */
export const routes: readonly Route<Services>[] = [
  listCommitments,
  common.create,
  common.get,
  ...switchRoutes(family, {
    pause: 'Disable a commitment',
    resume: 'Enable a commitment',
  }),
  common.delete,
];
