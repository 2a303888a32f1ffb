import { Type } from 'typebox';
import { AnyObject, Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { requestKey } from '../../../runtime/effects/request-key.ts';
import { reply, route } from '../../request.ts';
import type { ProgrammedModel } from '../programmed-model.ts';

interface Services {
  readonly programmedModel: ProgrammedModel;
}

const Text = Type.Optional(Type.String());

/** Sets the answers that the provider `mock` gives to a node. */
const programModel = route<Services>()({
  operationId: 'seamProgramModel',
  summary: 'Test seam: set the answers of a mock model to a node',
  method: 'POST',
  path: '/v1/host/sample/test/mock-ai/program',
  scope: 'runs:create',
  body: Type.Object({
    nodeId: NonEmpty,
    program: Type.Array(Type.Object({ content: Text, stopReason: Text, refusalText: Text }), { maxItems: 100 }),
  }),
  replies: { 200: Closed({ nodeId: Type.String(), answers: Type.Integer() }) },
  refusals: [400, 404],
  handle: ({ caller, body: { nodeId, program } }, { programmedModel }) => {
    programmedModel.program(caller.subject.tenant, nodeId, program);
    return reply(200, { nodeId, answers: program.length });
  },
});

/** The token limit of the last question that a node asked. */
const lastDispatchBudget = route<Services>()({
  operationId: 'seamLastDispatchBudget',
  summary: 'Test seam: get the token limit of the last question to a mock model',
  method: 'GET',
  path: '/v1/host/sample/test/mock-ai/last-dispatch-budget',
  scope: 'runs:read',
  query: Closed({ nodeId: NonEmpty }),
  replies: { 200: Closed({ maxTokens: Type.Union([Type.Integer(), Type.Null()]) }) },
  refusals: [400, 404],
  handle: ({ caller, query }, { programmedModel }) =>
    reply(200, { maxTokens: programmedModel.lastMaxTokens(caller.subject.tenant, query.nodeId) }),
});

const REQUEST = {
  messages: Type.Array(AnyObject),
  tools: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
  temperature: Type.Optional(Type.Number()),
  topP: Type.Optional(Type.Number()),
  topK: Type.Optional(Type.Number()),
  responseFormat: Type.Optional(AnyObject),
  maxOutputTokens: Type.Optional(Type.Integer()),
  stop: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
  seed: Type.Optional(Type.Integer()),
  safetySettings: Type.Optional(Type.Unknown()),
};

/** The key by which an answer to a question would be cached. Members that are no part of the recipe are ignored. */
const cacheKey = route<Services>()({
  operationId: 'seamLlmCacheKey',
  summary: 'Test seam: get the cache key of a question to a model',
  method: 'POST',
  path: '/v1/host/sample/test/llm-cache-key',
  scope: 'runs:read',
  body: Type.Object({
    provider: NonEmpty,
    model: NonEmpty,
    ...REQUEST,
    providerOptions: Type.Optional(AnyObject),
  }),
  replies: { 200: Closed({ cacheKey: Type.String() }) },
  refusals: [400],
  handle: ({ body }) => {
    const { provider, model, providerOptions } = body;
    const members = Object.entries(body).filter(([name]) => Object.hasOwn(REQUEST, name));
    const request = { ...Object.fromEntries(members), messages: body.messages, tools: body.tools };
    return reply(200, { cacheKey: requestKey({ provider, model, request, providerOptions }) });
  },
});

/** The test seams of the programmed model. */
export const mockAiSeams = [programModel, lastDispatchBudget, cacheKey];
