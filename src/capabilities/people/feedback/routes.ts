import { Type } from 'typebox';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { Closed, OneOf, Timestamp } from '../../../protocol/format/schema.ts';
import {
  Annotation,
  AnnotationCreate,
  AnnotationList,
  BUCKETS,
  FeedbackSummary,
} from '../../../protocol/people/annotations.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import { type About, reply, route } from '../../request.ts';
import { listText } from './list.ts';
import type { FeedbackService } from './service.ts';

interface Services {
  readonly feedback: FeedbackService;
}
const operation = route<Services>();

const PATH = '/v1/runs/{runId}/annotations';

/** A run that may not be seen is absent, whatever the body is like. */
async function isAbsent(
  { caller, params }: About<{ runId: string }>,
  { feedback }: Services,
): Promise<Refusal | undefined> {
  return (await feedback.isThere(caller, params.runId)) ? undefined : NOT_FOUND;
}

export const createAnnotation = operation({
  operationId: 'createAnnotation',
  summary: 'Rate, correct, label or flag a run, or a part of it',
  method: 'POST',
  path: PATH,
  scope: 'feedback:write',
  params: RunParams,
  body: AnnotationCreate,
  replies: { 201: Annotation },
  refusals: [400, 404],
  before: isAbsent,
  handle: async (request, { feedback }) => {
    const { caller, params, body } = request;
    const outcome = await feedback.annotate(caller, params.runId, body, (annotation) =>
      request.remember(reply(201, annotation)),
    );
    return isRefusal(outcome) ? outcome : reply(201, outcome);
  },
});

export const listAnnotations = operation({
  operationId: 'listAnnotations',
  summary: 'What people and agents think of a run',
  method: 'GET',
  path: PATH,
  scope: 'feedback:read',
  params: RunParams,
  replies: { 200: AnnotationList },
  refusals: [404],
  before: isAbsent,
  handle: ({ caller, params }, { feedback }) => ({
    status: 200,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    stream: () => listText(feedback.pages({ tenant: caller.subject.tenant, run_id: params.runId })),
  }),
});

export const summarizeFeedback = operation({
  operationId: 'summarizeFeedback',
  summary: 'The quality of runs in numbers, as a whole and over time',
  method: 'GET',
  path: '/v1/host/capstan/feedback/summary',
  scope: 'feedback:read',
  query: Closed({
    workflowId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    since: Type.Optional(Timestamp),
    until: Type.Optional(Timestamp),
    bucket: Type.Optional(OneOf(BUCKETS, { description: 'In UTC; day where it is not said' })),
  }),
  replies: { 200: FeedbackSummary },
  refusals: [400],
  handle: async ({ caller: { subject }, query }, { feedback }) => {
    const { workflowId, since, until, bucket = 'day' } = query;
    const outcome = await feedback.summary({
      tenant: subject.tenant,
      workspace: subject.workspace,
      workflowId,
      since: since === undefined ? undefined : Date.parse(since),
      until: until === undefined ? undefined : Date.parse(until),
      bucket,
    });
    return isRefusal(outcome) ? outcome : reply(200, outcome);
  },
});

export const routes = [createAnnotation, listAnnotations, summarizeFeedback];

const NOT_PROVIDED = refuse('capability_not_provided', 'This host does not serve feedback.', {
  capability: 'feedback',
});

/** What is answered where feedback is switched off: to everybody who has a credential, about every run. */
export const refusals = (['POST', 'GET'] as const).map((method) =>
  route<object>()({
    operationId: method === 'POST' ? 'createAnnotation' : 'listAnnotations',
    summary: 'Not provided: feedback is switched off',
    method,
    path: PATH,
    scope: 'any',
    replies: {},
    refusals: [501],
    handle: () => NOT_PROVIDED,
  }),
);
