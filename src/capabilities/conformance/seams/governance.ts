import { Type } from 'typebox';
import { makePlan } from '../../../engine/definition/plan.ts';
import { resolveInterrupt, suspendNode } from '../../../engine/people/interrupts.ts';
import type { Resolver } from '../../../engine/people/question.ts';
import { apply } from '../../../engine/run/fold.ts';
import { emptyRun, type Run } from '../../../engine/run/run.ts';
import { Closed, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import type { NewEvent, RunEvent } from '../../../protocol/running/events.ts';
import type { Role } from '../../../protocol/trust/scopes.ts';
import { reply, route } from '../../request.ts';

const operation = route<object>();

/** Decides on a principal without any role: whatever the action, the decision is no. */
const decideAuthorization = operation({
  operationId: 'seamDecideAuthorization',
  summary: 'Test seam: an authorization decision',
  method: 'POST',
  path: '/v1/host/sample/authorization/decide',
  scope: 'manifest:read',
  body: Type.Object({ principal: NonEmpty, action: NonEmpty, resource: Type.Optional(Type.Unknown()) }),
  replies: { 200: Type.Object({ allowed: Type.Boolean(), reason: Type.String() }) },
  handle: ({ body }) => {
    const isAllowed = principalWithoutRole(body.principal).hasScope(body.action);
    return reply(200, { allowed: isAllowed, reason: 'no role is known for this principal' });
  },
});

const GateScenario = Type.Object({
  scenario: OneOf(['unauthorized-grant', 'override']),
  principal: NonEmpty,
  reason: Type.Optional(Type.String()),
});

/** Applies the rules of the governance gate to a run that exists in memory only. */
const tryApprovalGate = operation({
  operationId: 'seamTryApprovalGate',
  summary: 'Test seam: the governance gate',
  method: 'POST',
  path: '/v1/host/sample/governance/approval-gate',
  scope: 'manifest:read',
  body: GateScenario,
  replies: { 200: Closed({ released: Type.Optional(Type.Boolean()), event: Type.Optional(Type.Unknown()) }) },
  handle: ({ body: { scenario, principal, reason } }) => {
    const run = runAtGate();
    if (scenario === 'unauthorized-grant') {
      const decision = resolveInterrupt(run, 'gate', { decision: 'granted' }, principalWithoutRole(principal));
      return reply(200, { released: Array.isArray(decision) });
    }
    const owner: Resolver = { ...principalWithoutRole(principal), hasRole: () => true };
    const decision = resolveInterrupt(run, 'gate', { decision: 'overridden', reason: reason ?? 'conformance' }, owner);
    const events = Array.isArray(decision) ? (decision as NewEvent[]) : [];
    return reply(200, { event: events.find(({ type }) => type === 'approval.overridden') });
  },
});

function principalWithoutRole(principal: string): Resolver {
  return {
    principal,
    mayNameVoters: false,
    hasScope: () => false,
    hasRole: (_role: Role | string) => false,
    hasGroup: () => false,
  };
}

function runAtGate(): Run {
  const gate = { requiredRole: 'reviewer', quorum: 2, override: { requiredRole: 'owner' } };
  const plan = makePlan(
    {
      id: 'gate',
      name: 'gate',
      version: '1',
      nodes: [
        {
          id: 'gate',
          typeId: 'core.openwop.governance.approvalGate',
          name: 'gate',
          position: { x: 0, y: 0 },
          config: gate,
          inputs: {},
        },
      ],
      edges: [],
      triggers: [],
      variables: [],
      metadata: {},
      settings: {},
    },
    1,
  );
  const run = emptyRun(plan, {
    runId: 'run-of-thought',
    workflowId: 'gate',
    owner: { tenant: 'none' },
    inputs: {},
    configurable: {},
    createdAt: 0,
    engineVersion: 1,
    limits: { maxNodeExecutions: 1, maxRunDurationMs: 1 },
  });
  const data = { ...gate, gateId: 'gate', artifactId: 'gate', artifactType: 'approval', title: 'gate', actions: [] };
  record(run, { type: 'run.started', payload: { workflowId: 'gate' } });
  record(run, { type: 'node.started', nodeId: 'gate', payload: { nodeId: 'gate', typeId: 'gate', attempt: 0 } });
  for (const event of suspendNode(run, 'gate', { kind: 'approval', data }, 'int-of-thought')) record(run, event);
  return run;
}

function record(run: Run, event: NewEvent): void {
  const sequence = run.sequence + 1;
  const envelope = {
    eventId: `evt-${sequence}`,
    runId: 'run-of-thought',
    sequence,
    timestamp: new Date(0).toISOString(),
  };
  apply(run, { ...event, ...envelope, schemaVersion: 1, engineVersion: '1' } as RunEvent);
}

/** The test seams of authorization and approval gates. */
export const governanceSeams = [decideAuthorization, tryApprovalGate];
