import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import {
  AGREEMENT_PERIODS,
  GoldCase,
  GoldTrial,
  GoldTrialRequest,
  JudgeAgreement,
} from '../../../protocol/learning/goals.ts';
import { ListQuery, numberAndIdIn, Page, pageFrom, pageOf } from '../../page.ts';
import { answer, reply, route } from '../../request.ts';
import { goldCaseFrom } from './agreement.ts';
import type { Goals } from './door.ts';
import { opinionIn } from './opinion-records.ts';
import type { GoalRunRow } from './records.ts';

const operation = route<{ readonly goals: Goals }>();

const VERIFIERS = '/v1/host/capstan/verifiers';
const VerifierParams = Closed({
  verifierId: Type.String({ minLength: 1, maxLength: 160, description: 'An id, without a version' }),
});

const getVerifierAgreement = operation({
  operationId: 'getVerifierAgreement',
  summary: 'How far people agree with the verdicts of a verifier: in all, by version, over time and by criterion',
  method: 'GET',
  path: `${VERIFIERS}/{verifierId}/agreement`,
  scope: 'goals:read',
  params: VerifierParams,
  query: Closed({ period: Type.Optional(OneOf(AGREEMENT_PERIODS, { description: 'Defaults to `week`' })) }),
  replies: { 200: JudgeAgreement },
  refusals: [400, 404],
  handle: async ({ caller, params, query }, { goals }) =>
    answer(200, await goals.agreement.of(caller, params.verifierId, query.period ?? 'week')),
});

const listGoldSet = operation({
  operationId: 'listGoldSet',
  summary: 'Verdicts of a verifier that people reviewed, with what they say it should have said; latest review first',
  method: 'GET',
  path: `${VERIFIERS}/{verifierId}/gold-set`,
  scope: 'goals:read',
  params: VerifierParams,
  query: ListQuery({}),
  replies: { 200: Page(GoldCase) },
  refusals: [400, 404],
  handle: async ({ caller, params, query }, { goals }) => {
    const page = pageFrom(query, numberAndIdIn);
    if (isRefusal(page)) return page;
    const before = page.after && { at: page.after.number, runId: page.after.id };
    const rows = await goals.agreement.goldSet(caller, params.verifierId, before, page.limit + 1);
    if (isRefusal(rows)) return rows;
    return reply(200, pageOf(rows, page, goldCaseFrom, placeOf));
  },
});

const judgeGoldSet = operation({
  operationId: 'judgeGoldSet',
  summary: 'Judge the gold set again, with the rubric of the verifier or another one; needs `runs:create`, too',
  method: 'POST',
  path: `${VERIFIERS}/{verifierId}/gold-set:judge`,
  scope: 'goals:write',
  params: VerifierParams,
  body: GoldTrialRequest,
  replies: { 200: GoldTrial },
  refusals: [400, 404],
  handle: async ({ caller, params, body, signal }, { goals }) =>
    answer(200, await goals.agreement.judgeAgain(caller, params.verifierId, body, signal)),
});

function placeOf(row: GoalRunRow): string {
  return `${opinionIn(row).reviewedAt}.${row.run_id}`;
}

/** The operations on how far people agree with verifiers. */
export const agreementRoutes = [getVerifierAgreement, listGoldSet, judgeGoldSet];
