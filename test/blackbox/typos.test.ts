import { expect, it } from 'vitest';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import {
  edge,
  expression,
  fixed,
  node,
  register,
  unique,
  variable,
  WORKFLOWS,
  workflow,
} from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { onOneStore } from '../support/stores.ts';

/** What an author may get wrong: mistakes are refused, oddities are warnings in the answer. */

const DECLARED = { variables: [{ name: 'plan', type: 'string' as const, defaultValue: 'pro' }] };
const branch = (text: string) =>
  workflow(
    [node('a', 'core.identity', { inputs: { n: fixed(1) } }), node('b')],
    [edge('a', 'b', { condition: { type: 'expression', expression: text } })],
    DECLARED,
  );

onOneStore('typos', (host) => {
  const api = () => host().as('editor');

  it.each([
    ['a variable', 'variables.paln == "pro"', 'Unknown variable "paln". Did you mean "plan"?'],
    ['an output', 'output.m == 1', 'The node "a" has no output "m". It has n.'],
    ['a node', 'nodes.aa.n == 1', 'Unknown node "aa". Did you mean "a"?'],
  ])(
    '%s that is misspelt in a condition is refused, so that no branch is silently skipped',
    async (_what, text, says) => {
      const answer = await api().post(WORKFLOWS, branch(text));
      expectRefusal(answer, 422, 'validation_error');
      expect(answer.body.details.fields).toEqual([
        expect.objectContaining({ path: 'edges[0].condition', message: expect.stringContaining(says) }),
      ]);
    },
  );

  it.each([
    ['an output of an agent', 'core.agents.run', 'output.resutl == 1', 'The node "a" has no output "resutl".'],
    ['an output of a dispatch', 'core.dispatch', 'nodes.a.outcome == "x"', 'The node "a" has no output "outcome".'],
  ])('%s that is misspelt is refused', async (_what, typeId, text, says) => {
    const condition = { type: 'expression' as const, expression: text };
    const answer = await api().post(
      WORKFLOWS,
      workflow([node('a', typeId), node('b')], [edge('a', 'b', { condition })]),
    );
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.body.details.fields).toEqual([
      expect.objectContaining({ path: 'edges[0].condition', message: expect.stringContaining(says) }),
    ]);
  });

  it('an output of a gate that answers may lack gets a warning', async () => {
    const condition = { type: 'expression' as const, expression: 'output.acton == "accept"' };
    const gated = workflow([node('a', 'core.approvalGate'), node('b')], [edge('a', 'b', { condition })]);
    const { status, body } = await api().post(WORKFLOWS, gated);
    expect(status).toBe(201);
    expect(body.warnings).toEqual([
      expect.objectContaining({ path: 'edges[0].condition', message: expect.stringContaining('no output "acton"') }),
    ]);
  });

  it('an input that is almost one that the node lacks is refused; another that it does not read, and a missing one, get a warning', async () => {
    const parse = (inputs: WorkflowNode['inputs']) => workflow([node('a', 'core.openwop.data.json-parse', { inputs })]);
    const refused = await api().post(WORKFLOWS, parse({ txet: fixed('1') }));
    expectRefusal(refused, 422, 'validation_error');
    expect(refused.body.details.fields).toEqual([
      expect.objectContaining({
        path: 'nodes[0].inputs.txet',
        message: expect.stringContaining('Did you mean "text"?'),
      }),
    ]);
    const warned = await api().post(WORKFLOWS, parse({ text: fixed('1'), txet: fixed('1'), other: fixed(2) }));
    expect(warned.status).toBe(201);
    const told = (body: { warnings: { path: string }[] }) => body.warnings.map(({ path }) => path);
    expect(told(warned.body)).toEqual(['nodes[0].inputs.txet', 'nodes[0].inputs.other']);
    const delivered = await api().post(
      WORKFLOWS,
      workflow(
        [node('a', 'core.identity', { inputs: { n: fixed('1') } }), node('b', 'core.openwop.data.json-parse')],
        [edge('a', 'b', { sourceOutput: 'n', targetInput: 'texts' })],
      ),
    );
    expect(delivered.status).toBe(201);
    expect(told(delivered.body)).toEqual(['nodes[1].inputs', 'edges[0].targetInput']);
  });

  it('warnings do not refuse; they are in the answer, also to a replacement', async () => {
    const definition = workflow(
      [
        node('a', 'core.subWorkflow', { config: { workflowId: unique('ghost') } }),
        node('b', 'core.ai.callPrompt', { config: { userPromptRef: 'prompt:no-such-prompt' } }),
        node('c', 'core.agents.run', { config: { agentId: 'no.such.agent', tools: ['no:tool'] } }),
        node('d', 'core.openwop.http.fetch', { config: { url: 'http://10.1.2.3/x' } }),
        node('e', 'core.identity', { inputs: { x: variable('nobody') } }),
      ],
      [edge('a', 'b'), edge('b', 'c'), edge('c', 'd')],
    );
    const registered = await api().post(WORKFLOWS, definition);
    expect(registered.status).toBe(201);
    const told = (registered.body.warnings as { path: string }[]).map(({ path }) => path);
    expect(told).toEqual(
      expect.arrayContaining([
        'nodes[0].config.workflowId',
        'nodes[1].config',
        'nodes[2].config.agentId',
        'nodes[2].config.tools.0',
        'nodes[3].config.url',
        'nodes[4]',
        'nodes[4].inputs.x',
      ]),
    );
    const replaced = await api().request('PUT', `${WORKFLOWS}/${definition.id}`, definition);
    expect(replaced.body.warnings).toEqual(registered.body.warnings);
    const listed = await api().get(WORKFLOWS);
    expect(listed.body.items.find(({ id }: { id: string }) => id === definition.id)).not.toHaveProperty('warnings');
  });

  it('what is right has no warnings', async () => {
    const { body } = await api().post(WORKFLOWS, branch('variables.plan == "pro" && output.n == 1'));
    expect(body).not.toHaveProperty('warnings');
  });
});

onOneStore('a workflow as authors write it', (host) => {
  const api = () => host().as('editor');
  const least = (id: string) => ({
    $schema: '/schemas/workflow.json',
    id,
    version: '1',
    nodes: [
      { id: 'a', typeId: 'core.identity', inputs: { n: fixed(1) } },
      { id: 'b', typeId: 'core.identity', inputs: { n: expression('nodes.a.n + 1') } },
    ],
    edges: [{ sourceNodeId: 'a', targetNodeId: 'b' }],
  });

  it('is filled in when it is stored, and the same text makes no new version', async () => {
    const id = unique('least');
    expect((await api().post(WORKFLOWS, least(id))).body).toMatchObject({ name: id, registeredVersion: 1 });
    expect((await api().post(WORKFLOWS, least(id))).body).toMatchObject({ registeredVersion: 1 });
    const { body } = await api().get(`/v1/workflows/${id}`);
    expect(body).toMatchObject({ triggers: [], variables: [], metadata: {}, settings: {} });
    expect(body.nodes[1]).toMatchObject({ name: 'b', position: { x: 240, y: 0 }, config: {} });
    expect(body).not.toHaveProperty('$schema');
  });

  it('is described by a JSON Schema at a URL that needs no key', async () => {
    const { status, body } = await host().anonymous.get('/schemas/workflow.json');
    expect(status).toBe(200);
    expect(body.required.toSorted()).toEqual(['id', 'nodes', 'version']);
    expect(body.additionalProperties).toBe(false);
    await register(api(), workflow([node('a')]));
  });
});
