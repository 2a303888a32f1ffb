import { NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { Annotation, AnnotationCreate, AnnotationList, FeedbackSummary } from '../../../protocol/people/annotations.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import { type About, answer, reply, route, transact } from '../../request.ts';
import { SummaryQuery, summaryRequest } from '../../summary-query.ts';
import { listText } from './list.ts';
import type { FeedbackService } from './service.ts';

/** What the handlers of feedback routes use. */
interface Services {
  readonly feedback: FeedbackService;
}
const operation = route<Services>();

const PATH = '/v1/runs/{runId}/annotations';

/** A run that the caller cannot see is answered with 404 even if the body is invalid. */
async function refuseUnknownRun(
  { caller, params }: About<{ runId: string }>,
  { feedback }: Services,
): Promise<Refusal | undefined> {
  return (await feedback.hasRun(caller, params.runId)) ? undefined : NOT_FOUND;
}

const createAnnotation = operation({
  operationId: 'createAnnotation',
  summary: 'Rate, correct, label or flag a run, or a part of it',
  method: 'POST',
  path: PATH,
  scope: 'feedback:write',
  params: RunParams,
  body: AnnotationCreate,
  replies: { 201: Annotation },
  refusals: [400, 404, 409],
  before: refuseUnknownRun,
  handle: ({ caller, params, body }, { feedback }) =>
    transact(
      () => feedback.annotate(caller, params.runId, body),
      (annotation) => reply(201, annotation),
      { isAdditive: true },
    ),
});

const listAnnotations = operation({
  operationId: 'listAnnotations',
  summary: 'List the annotations of a run',
  method: 'GET',
  path: PATH,
  scope: 'feedback:read',
  params: RunParams,
  replies: { 200: AnnotationList },
  refusals: [404],
  before: refuseUnknownRun,
  handle: ({ caller, params }, { feedback }) => ({
    status: 200,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    stream: () => listText(feedback.pages({ tenant: caller.subject.tenant, run_id: params.runId })),
  }),
});

const summarizeFeedback = operation({
  operationId: 'summarizeFeedback',
  summary: 'Summarise the quality of runs, in total and over time',
  method: 'GET',
  path: '/v1/host/capstan/feedback/summary',
  scope: 'feedback:read',
  query: SummaryQuery,
  replies: { 200: FeedbackSummary },
  refusals: [400],
  handle: async ({ caller: { subject }, query }, { feedback }) =>
    answer(200, await feedback.summary(summaryRequest(subject, query))),
});

/** The routes of feedback. */
export const routes = [createAnnotation, listAnnotations, summarizeFeedback];

const NOT_PROVIDED = refuse('capability_not_provided', 'Feedback is disabled on this host.', {
  capability: 'feedback',
});

/** The routes of a host whose operator has switched feedback off: every caller gets the same refusal. */
export const routesWhenOff = (['POST', 'GET'] as const).map((method) =>
  route<object>()({
    operationId: method === 'POST' ? 'createAnnotation' : 'listAnnotations',
    summary: 'Refused: feedback is switched off',
    method,
    path: PATH,
    scope: 'any',
    replies: {},
    refusals: [501],
    handle: () => NOT_PROVIDED,
  }),
);
