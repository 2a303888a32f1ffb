import { Type } from 'typebox';
import { isRefusal, NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { AnyObject, Closed, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import { perform } from '../../../runtime/change.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Packs } from '../../ai/packs/door.ts';
import { type Caller, reply, route } from '../../request.ts';
import type { Workflows } from '../../running/workflows/door.ts';
import { AGENT_PACK, STRICT_AGENT } from '../fixtures/agent-pack.ts';
import { line, node } from '../fixtures/definitions.ts';
import { exampleOf, type ProgrammedAnswer, type ProgrammedModel } from '../programmed-model.ts';
import { payloadOf, type TrialRun, type TrialServices, tryRun } from './trial-run.ts';

interface Services extends TrialServices {
  readonly packs: Packs;
  readonly workflows: Workflows;
  readonly programmedModel: ProgrammedModel;
}
const operation = route<Services>();
const Optional = Type.Optional;

const NODE = 'invoke';

/** Runs an agent whose model says what a suite wants it to say. */
const liveInvoke = operation({
  operationId: 'seamLiveInvoke',
  summary: 'Test seam: run an agent of a pack with a model that is programmed',
  method: 'POST',
  path: '/v1/host/sample/agents/live-invoke',
  scope: 'runs:create',
  body: Type.Object({
    agentId: Optional(NonEmpty),
    source: Optional(
      OneOf(['workflow-node', 'run-api', 'chat-mention'], { description: 'It is a workflow node in any case' }),
    ),
    returnSchemaRef: Optional(NonEmpty),
    forceInvalidResult: Optional(Type.Boolean()),
    attemptTool: Optional(NonEmpty),
  }),
  replies: { 200: Closed({ runId: Type.String(), invocationId: Type.String(), outcome: Type.String() }) },
  refusals: [400, 404],
  handle: async ({ caller, body, signal }, services) => {
    const { returnSchemaRef, attemptTool, forceInvalidResult = false } = body;
    const { agentId = returnSchemaRef === undefined ? AGENT_PACK.agents[0]!.agentId : STRICT_AGENT } = body;
    const first: ProgrammedAnswer[] =
      attemptTool === undefined ? [] : [{ toolCalls: [{ id: 'call-1', name: attemptTool, arguments: {} }] }];
    const invocation = { agentId, task: TASK, first, isInvalid: forceInvalidResult };
    const run = await invoke(services, caller, invocation, signal);
    if (isRefusal(run)) return run;
    const { invocationId = '', outcome = run.status } = endOf(run.events);
    return reply(200, { runId: run.runId, invocationId, outcome });
  },
});

/** Hands a task to an agent and tells what came of it. */
const dispatchAgent = operation({
  operationId: 'seamDispatchAgent',
  summary: 'Test seam: hand a task to an agent of a pack',
  method: 'POST',
  path: '/v1/host/sample/agents/{agentId}/dispatch',
  scope: 'runs:create',
  params: Closed({ agentId: NonEmpty }),
  body: Type.Object({
    task: Optional(Type.Unknown()),
    validateHandoff: Optional(Type.Boolean({ description: 'With false, a task that fits is handed over instead' })),
    availableTools: Optional(Type.Array(Type.String())),
  }),
  replies: { 200: AnyObject },
  refusals: [400, 404],
  handle: async ({ caller, params: { agentId }, body, signal }, services) => {
    const { task = {}, validateHandoff = true } = body;
    const invocation = { agentId, task: validateHandoff ? task : undefined, first: [], isInvalid: false };
    const run = await invoke(services, caller, invocation, signal);
    if (isRefusal(run)) return run;
    const { outcome = 'failed' } = endOf(run.events);
    const failed = run.events.find(({ type }) => type === 'node.failed');
    return reply(200, {
      agentId,
      runId: run.runId,
      status: outcome,
      events: run.events.filter(({ type }) => type.startsWith('agent.')).map(flat),
      ...(failed ? { error: payloadOf(failed).error } : {}),
    });
  },
});

/** A task for the agent that takes tasks of one form only; the others take any. */
const TASK = { text: 'Invoice 42, total 12.00', extractionFields: ['total'] };

interface Trial {
  readonly agentId: string;
  /** Absent for a task that the agent takes. */
  readonly task: unknown;
  /** What the model says before its result. */
  readonly first: readonly ProgrammedAnswer[];
  readonly isInvalid: boolean;
}

/** Runs the agent in a workflow of its own, which is registered when it is first needed. */
async function invoke(
  services: Services,
  caller: Caller,
  { agentId, task, first, isInvalid }: Trial,
  signal: AbortSignal,
): Promise<TrialRun | Refusal> {
  const agent = await services.packs.agent(caller.subject, agentId);
  if (!agent) return NOT_FOUND;
  const id = `seam-agent-${sha256Hex(agentId).slice(0, 16)}`;
  const nodes = [node(NODE, 'core.agents.run', { agentId, provider: 'mock', model: 'mock-mini' })];
  const registered = await perform(services.runtime, () =>
    services.workflows.register(caller, line(id, `Runs ${agentId}`.slice(0, 100), nodes)),
  );
  if (isRefusal(registered)) return registered;
  const decision = isInvalid ? 'not what the schema asks for' : exampleOf(agent.returnSchema ?? {});
  const content = JSON.stringify({ decision, confidence: 1, reasoning: 'The seam said so.' });
  // An answer that does not fit is asked for again, a few times.
  services.programmedModel.program(caller.subject.tenant, NODE, [...first, ...Array.from('1234', () => ({ content }))]);
  const fitting = task ?? exampleOf(agent.taskSchema ?? {});
  return tryRun(services, caller, { workflowId: id, inputs: { task: fitting } }, signal);
}

function endOf(events: readonly RunEvent[]): { readonly invocationId?: string; readonly outcome?: string } {
  const last = events.findLast(({ type }) => type === 'agent.invocation.completed');
  return last ? payloadOf(last) : {};
}

/** An event of the log as suites read it from seams: with its payload beside its type. */
export function flat(event: RunEvent): JsonObject {
  return { type: event.type, ...payloadOf(event) };
}

/** The test seams that run agents. */
export const agentSeams = [liveInvoke, dispatchAgent];
