import { Type } from 'typebox';
import { Closed, NonEmpty } from '../../protocol/format/schema.ts';
import { reply, route } from '../request.ts';
import type { ProgrammedModel } from './programmed-model.ts';

interface Services {
  readonly programmedModel: ProgrammedModel;
}

const Text = Type.Optional(Type.String());

/** Sets the answers that the provider `mock` gives to a node. */
const programModel = route<Services>()({
  operationId: 'seamProgramModel',
  summary: 'Test seam: what a mock model says to a node, answer by answer',
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

const lastDispatchBudget = route<Services>()({
  operationId: 'seamLastDispatchBudget',
  summary: 'Test seam: how long the last answer of a mock model might be',
  method: 'GET',
  path: '/v1/host/sample/test/mock-ai/last-dispatch-budget',
  scope: 'runs:read',
  query: Closed({ nodeId: NonEmpty }),
  replies: { 200: Closed({ maxTokens: Type.Union([Type.Integer(), Type.Null()]) }) },
  refusals: [400, 404],
  handle: ({ caller, query }, { programmedModel }) =>
    reply(200, { maxTokens: programmedModel.lastMaxTokens(caller.subject.tenant, query.nodeId) }),
});

/** The test seams of the programmed model. */
export const mockAiSeams = [programModel, lastDispatchBudget];
