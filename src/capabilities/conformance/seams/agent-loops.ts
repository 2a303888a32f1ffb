import { Type } from 'typebox';
import type { OrchestratorDecision } from '../../../protocol/ai/agents.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { AnyObject, OneOf } from '../../../protocol/format/schema.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { perform } from '../../../runtime/change.ts';
import type { Verifiers } from '../../learning/verifiers/door.ts';
import type { Interrupts } from '../../people/interrupts/door.ts';
import { type Caller, reply, route } from '../../request.ts';
import type { Workflows } from '../../running/workflows/door.ts';
import { line, node } from '../fixtures/definitions.ts';
import { flat } from './agent-runs.ts';
import { awaitRun, payloadOf, type TrialRun, type TrialServices, tryRun } from './trial-run.ts';

interface Services extends TrialServices {
  readonly workflows: Workflows;
  readonly verifiers: Verifiers;
  readonly interrupts: Interrupts;
}
const operation = route<Services>();
const Optional = Type.Optional;

const WORK: OrchestratorDecision = { kind: 'next-worker', nextWorkerIds: ['conformance-noop'] };
const END: OrchestratorDecision = { kind: 'terminate' };
/** Below the floor, so a person has to accept the decision first. */
const DOUBTFUL = 0.4;
const DISPATCH = 'dispatch';

/** A supervised run of so many turns, which may be interrupted in one of them. */
const agentLoop = operation({
  operationId: 'seamAgentLoop',
  summary: 'Test seam: a supervised run of so many turns',
  method: 'POST',
  path: '/v1/host/sample/agentloop/run',
  scope: 'runs:create',
  body: Type.Object({
    turns: Type.Integer({ minimum: 1, maximum: 50 }),
    suspendAtTurn: Optional(Type.Integer({ minimum: 1, description: 'A person has to accept this decision' })),
    resume: Optional(Type.Boolean({ description: 'Whether somebody does' })),
  }),
  replies: { 200: AnyObject },
  refusals: [400, 404],
  handle: async ({ caller, body, signal }, services) => {
    const { turns, suspendAtTurn = 0, resume = false } = body;
    const plan = Array.from({ length: turns }, (_, index) => {
      const decision = index < turns - 1 ? WORK : END;
      return index + 1 === suspendAtTurn ? { ...decision, confidence: DOUBTFUL } : decision;
    });
    const definition = supervised(`seam-agent-loop-${turns}-${suspendAtTurn}`, { mockDispatchPlan: plan });
    const run = await tryWorkflow(services, caller, definition, signal);
    if (isRefusal(run)) return run;
    const resumed = resume && !hasEnded(run) ? await accept(services, caller, run, signal) : run;
    if (isRefusal(resumed)) return resumed;
    const { events, runId, status } = resumed;
    const decisions = decisionsIn(events).map(payloadOf);
    return reply(200, { runId, status, decisions, ...resumption(events) });
  },
});

/** A supervised run whose worker gets the verdict that a suite wants. */
const verifyRun = operation({
  operationId: 'seamVerifyRun',
  summary: 'Test seam: a supervised run with a verdict',
  method: 'POST',
  path: '/v1/host/sample/agents/verify-run',
  scope: 'runs:create',
  body: Type.Object({ simulateVerdict: OneOf(['pass', 'fail', 'revise']) }),
  replies: { 200: AnyObject },
  refusals: [400, 404],
  handle: async ({ caller, body: { simulateVerdict }, signal }, services) => {
    const verifier = `seam-verdict-${simulateVerdict}`;
    const expected = simulateVerdict === 'pass' ? 'completed' : 'failed';
    const criteria = [{ key: 'status', expression: `run.status == "${expected}"` }];
    if (isRefusal(await services.verifiers.get(caller, verifier))) {
      const put = () => services.verifiers.put(caller, { id: verifier, kind: 'criteria', criteria });
      const stored = await perform(services.runtime, put);
      if (isRefusal(stored)) return stored;
    }
    const dispatch = simulateVerdict === 'revise' ? { revisions: 1 } : {};
    const supervisor = { verifier, mockDispatchPlan: [WORK, END] };
    const run = await tryWorkflow(services, caller, supervised(verifier, supervisor, dispatch), signal);
    if (isRefusal(run)) return run;
    const { runId, status } = run;
    const events = run.events.filter(({ type }) => type.startsWith('agent.')).map(flat);
    return reply(200, { runId, status, committed: status === 'completed', events });
  },
});

function supervised(id: string, supervisor: JsonObject, dispatch: JsonObject = {}): WorkflowDefinition {
  return line(id, 'Is led through its turns', [
    node('supervisor', 'core.orchestrator.supervisor', supervisor),
    node(DISPATCH, 'core.dispatch', dispatch),
  ]);
}

async function tryWorkflow(
  services: Services,
  caller: Caller,
  definition: WorkflowDefinition,
  signal: AbortSignal,
): Promise<TrialRun | Refusal> {
  const registered = await perform(services.runtime, () => services.workflows.register(caller, definition));
  if (isRefusal(registered)) return registered;
  return tryRun(services, caller, { workflowId: definition.id }, signal);
}

async function accept(
  services: Services,
  caller: Caller,
  { runId }: TrialRun,
  signal: AbortSignal,
): Promise<TrialRun | Refusal> {
  const { runtime, interrupts } = services;
  const answered = await perform(runtime, () => interrupts.resolve(caller, runId, DISPATCH, { action: 'accept' }));
  return isRefusal(answered) ? answered : awaitRun(services, caller, runId, signal);
}

function hasEnded({ status }: TrialRun): boolean {
  return !status.startsWith('waiting-');
}

function decisionsIn(events: readonly RunEvent[]) {
  return events.filter((event) => event.type === 'runOrchestrator.decided');
}

/** The turn in which the run went on after the interrupt. */
function resumption(events: readonly RunEvent[]): { readonly resumedIteration?: unknown } {
  const place = events.findIndex(({ type }) => type === 'node.resumed');
  const last = decisionsIn(events.slice(0, Math.max(0, place))).at(-1);
  return last ? { resumedIteration: payloadOf(last).iteration } : {};
}

/** The test seams of supervised runs. */
export const loopSeams = [agentLoop, verifyRun];
