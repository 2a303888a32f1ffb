import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { WorkflowDefinition, WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { freshFolder } from '../support/database.ts';
import { node, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { setGoal } from '../support/goals.ts';
import { onOneStore } from '../support/stores.ts';

/** A misspelt key would change nothing, and nobody would notice: a gate that should need two votes opens with one. */

const one = (typeId: string, config: WorkflowNode['config'], more: Partial<WorkflowNode> = {}): WorkflowDefinition =>
  workflow([node('a', typeId, { config, ...more })]);

const approval = { artifactId: 'a', artifactType: 'text', title: 'Approve', actions: ['accept', 'reject'] };

const MISSPELT: readonly (readonly [what: string, definition: WorkflowDefinition, path: string, meant: string])[] = [
  [
    'an approval gate',
    one('core.approvalGate', { requiredApproval: 2 }),
    'nodes[0].config.requiredApproval',
    'requiredApprovals',
  ],
  [
    'the audience of a gate',
    one('core.approvalGate', { audience: { subject: ['ann'] } }),
    'nodes[0].config.audience.subject',
    'subjects',
  ],
  [
    'a governance gate',
    one('core.openwop.governance.approvalGate', { requiredRole: 'reviewer', quorums: 2 }),
    'nodes[0].config.quorums',
    'quorum',
  ],
  [
    'a question',
    one('core.clarificationGate', { questions: [{ id: 'q', question: 'Why?', schemas: {} }] }),
    'nodes[0].config.questions.0.schemas',
    'schema',
  ],
  [
    'the data of an interrupt',
    one('core.interrupt', { kind: 'approval', data: { ...approval, requiredApproval: 2 } }),
    'nodes[0].config.data.requiredApproval',
    'requiredApprovals',
  ],
  ['a wait', one('core.flow.wait', { mode: 'webhook', second: 5 }), 'nodes[0].config.second', 'seconds'],
  [
    'a predicate',
    one('core.flow.if', { predicate: { path: 'x', op: 'eq', values: 1 } }),
    'nodes[0].config.predicate.values',
    'value',
  ],
  [
    'the settings of a workflow',
    workflow([node('a')], [], { settings: { timeOut: 1_000 } as WorkflowDefinition['settings'] }),
    'settings.timeOut',
    'timeout',
  ],
  [
    'the settings of a node',
    one('core.noop', {}, { settings: { timeoutMS: 5 } as NonNullable<WorkflowNode['settings']> }),
    'nodes[0].settings.timeoutMS',
    'timeoutMs',
  ],
  [
    'the retries of a node',
    one('core.noop', {}, { settings: { retry: { maxRetrys: 5 } } as NonNullable<WorkflowNode['settings']> }),
    'nodes[0].settings.retry.maxRetrys',
    'maxRetries',
  ],
  [
    'what masks values',
    workflow([node('a')], [], {
      metadata: { complianceConfig: { maskingmode: 'omit' } } as WorkflowDefinition['metadata'],
    }),
    'metadata.complianceConfig.maskingmode',
    'maskingMode',
  ],
  [
    'a schedule',
    workflow([node('a')], [], {
      triggers: [{ id: 't', type: 'schedule', config: { cron: '0 9 * * *', timeZones: 'Europe/Berlin' } }],
    }),
    'triggers[0].config.timeZones',
    'timezone',
  ],
];

onOneStore('unknown keys', (host) => {
  const editor = (): Api => host().as('editor');

  it.each(MISSPELT)(
    'are refused in %s, with the place and the nearest known key',
    async (_, definition, path, meant) => {
      const key = path.split('.').at(-1);
      const answer = await editor().post(WORKFLOWS, definition);
      expectRefusal(answer, 422, 'validation_error');
      expect(answer.body.details.fields).toMatchObject([
        { path, message: `The key "${key}" is not known here. Did you mean "${meant}"?` },
      ]);
      expect(answer.body.message).toContain(path);
      expect((await editor().get(`${WORKFLOWS}/${definition.id}`)).status).toBe(404);
    },
  );

  it('are refused by name, also where none is near and where no key is known', async () => {
    const answer = await editor().post(WORKFLOWS, one('core.start', { __proto: 1, constructor: 1, toString: 1 }));
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.body.details.fields.map(({ path }: { path: string }) => path)).toEqual([
      'nodes[0].config.__proto',
      'nodes[0].config.constructor',
      'nodes[0].config.toString',
    ]);
  });

  it('are told together with what else is wrong', async () => {
    const definition = one('core.approvalGate', { requiredApproval: 2, timeoutMs: 0 });
    const { body } = await editor().post(WORKFLOWS, definition);
    expect(body.details.fields.map(({ path }: { path: string }) => path).sort()).toEqual([
      'nodes[0].config.requiredApproval',
      'nodes[0].config.timeoutMs',
    ]);
  });

  it('are the author’s own in the metadata', async () => {
    const metadata = { team: 'north', complianceConfig: { identifiers: ['name'] } } as WorkflowDefinition['metadata'];
    expect((await editor().post(WORKFLOWS, workflow([node('a')], [], { metadata }))).status).toBe(201);
  });

  it('are refused in plans, goals and what starts runs', async () => {
    const owner = host().as('owner');
    const goal = { objective: 'x', completion: { check: 'host' }, continuation: { mode: 'manual' } };
    const bounds = { maxLoopIterations: 3 };
    const { id } = await setGoal(owner);
    for (const [method, path, rest = {}] of [
      ['POST', '/v1/host/capstan/schedules'],
      ['POST', '/v1/host/capstan/heartbeats'],
      ['POST', '/v1/host/capstan/commitments'],
      ['POST', '/v1/goals', { ...goal, bounds }],
      ['PUT', `/v1/host/capstan/goals/${id}/plan`],
    ] as const) {
      const { status, body } = await owner.request(method, path, { ...rest, requiredApproval: 2 });
      expect({ path, status, error: body.error }).toEqual({ path, status: 400, error: 'validation_error' });
      expect(body.details.fields).toContainEqual({ path: 'requiredApproval', message: 'is not a known member' });
    }
  });
});

describe('capstan workflows validate', () => {
  it.each(MISSPELT)('tells of a misspelt key in %s', async (_, definition, path, meant) => {
    const folder = freshFolder();
    const file = join(folder.path, 'workflow.json');
    writeFileSync(file, JSON.stringify(definition));
    const { code, out } = await capstan(['workflows', 'validate', file]);
    folder.remove();
    expect(code).not.toBe(0);
    expect(out).toContain(path);
    expect(out).toContain(`Did you mean "${meant}"?`);
  });
});
