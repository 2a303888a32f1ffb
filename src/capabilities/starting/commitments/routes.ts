import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import { COMMITMENT_STATES, Commitment, CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { ListQuery, Page, pageById, pageRequest } from '../../page.ts';
import { answer, type Reply, reply, route } from '../../request.ts';
import type { CommitmentService } from './service.ts';

const operation = route<{ readonly commitments: CommitmentService }>();

const COMMITMENTS = '/v1/host/capstan/commitments';
const CommitmentParams = Closed({ commitmentId: Type.String({ minLength: 1, maxLength: 128 }) });

const listCommitments = operation({
  operationId: 'listCommitments',
  summary: 'Commitments, newest first',
  method: 'GET',
  path: COMMITMENTS,
  scope: 'manifest:read',
  query: ListQuery({ state: Type.Optional(OneOf(COMMITMENT_STATES)) }),
  replies: { 200: Page(Commitment) },
  refusals: [400],
  handle: async ({ caller, query }, { commitments }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const found = await commitments.list(caller, { state: query.state, before: page.after }, page.limit + 1);
    return reply(200, pageById(found, page));
  },
});

const createCommitment = operation({
  operationId: 'createCommitment',
  summary: 'Have a workflow run once a time has come or something has become true',
  method: 'POST',
  path: COMMITMENTS,
  scope: 'schedules:write',
  body: CommitmentRequest,
  replies: { 201: Commitment },
  refusals: [400, 409],
  handle: async (request, { commitments }) =>
    answer(201, await commitments.create(request.caller, request.body, (done) => request.remember(reply(201, done)))),
});

const getCommitment = operation({
  operationId: 'getCommitment',
  summary: 'A commitment, with what came of it',
  method: 'GET',
  path: `${COMMITMENTS}/{commitmentId}`,
  scope: 'manifest:read',
  params: CommitmentParams,
  replies: { 200: Commitment },
  refusals: [404],
  handle: async ({ caller, params }, { commitments }) =>
    answer(200, await commitments.find(caller, params.commitmentId)),
});

function turning(verb: 'pause' | 'resume', summary: string) {
  return operation({
    operationId: `${verb}Commitment`,
    summary,
    method: 'POST',
    path: `${COMMITMENTS}/{commitmentId}:${verb}`,
    scope: 'schedules:write',
    params: CommitmentParams,
    replies: { 200: Commitment },
    refusals: [404, 409],
    handle: async (request, { commitments }) => {
      const remember = (done: Commitment) => request.remember(reply(200, done));
      return answer(
        200,
        await commitments.turn(request.caller, request.params.commitmentId, verb === 'resume', remember),
      );
    },
  });
}

const deleteCommitment = operation({
  operationId: 'deleteCommitment',
  summary: 'Remove a commitment; a run that has begun goes on',
  method: 'DELETE',
  path: `${COMMITMENTS}/{commitmentId}`,
  scope: 'schedules:write',
  params: CommitmentParams,
  replies: { 204: 'nothing' },
  refusals: [404, 409],
  handle: async (request, { commitments }) => {
    const done: Reply = { status: 204 };
    const { commitmentId } = request.params;
    return (await commitments.remove(request.caller, commitmentId, () => request.remember(done))) ?? done;
  },
});

export const routes = [
  listCommitments,
  createCommitment,
  getCommitment,
  turning('pause', 'Keep a commitment without doing anything for it'),
  turning('resume', 'Have a commitment kept once it is due, again'),
  deleteCommitment,
];
