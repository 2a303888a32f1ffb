import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { completeWorkflow } from '../engine/definition/complete.ts';
import type { AuthoredWorkflow, WorkflowDefinition } from '../protocol/running/workflows.ts';
import { defineWorkflow } from './define-workflow.ts';
import { cel, ended, ifFailed, when } from './flow-values.ts';
import { Type } from './index.ts';
import { workflowSource } from './workflow-source.ts';

/** Goal: a definition becomes code that makes it again. Method: the code is written to a file and imported. */

const folder = mkdtempSync(join(tmpdir(), 'capstan-source-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const BUILD = new URL('./index.ts', import.meta.url).href;
let files = 0;

/** What the code of a workflow makes. */
async function made(definition: WorkflowDefinition): Promise<unknown> {
  const { name, text } = workflowSource(definition);
  const file = join(folder, `${files++}.ts`);
  writeFileSync(file, text.replace('capstan/build', BUILD));
  const module = await import(pathToFileURL(file).href);
  return module[name];
}

const everything = defineWorkflow(
  {
    id: 'everything-else',
    name: "It's all here",
    version: '2.1',
    description: 'Two\nlines, and "quotes".',
    metadata: { tags: ['a'] },
    settings: { timeout: 1_000 },
    triggers: [{ id: 'hook', type: 'webhook', config: { scheme: 'github', filter: "body.x == 'y'" } }],
    variables: {
      number: Type.Number(),
      name: Type.String({ default: 'Ada', description: 'Who.' }),
      secret: Type.Optional(Type.String({ sensitive: true })),
      list: Type.Array(Type.Unknown()),
      'odd-name': Type.Boolean({ default: false }),
    },
  },
  ({ node, gate, set, variables }) => {
    const one = node('one', 'core.identity', {
      inputs: { n: variables.number, o: variables['odd-name'], s: variables.secret, fixed: { a: [1, null, 'x'] } },
      retry: { maxRetries: 3, delayMs: 10 },
      timeoutMs: 500,
      notes: 'First.',
    });
    const two = node('two', 'acme.own', { inputs: { x: one.output('n') }, config: { deep: { yes: true } } });
    const ask = gate('ask', { title: 'Go on?', after: when(two, 'nodes.two.total > 1.0') });
    set('keep', variables.name, cel('nodes.one.n + 1'), { after: ended(ask) });
    node('sorry', 'core.noop', { after: ifFailed(two), position: { x: 7, y: 9 }, name: 'Sorry' });
    node('all', 'core.noop', { after: [one, two] });
  },
);

describe('a workflow as code', () => {
  it('makes the definition that it was made of', async () => {
    const [, , ...lines] = workflowSource(everything).text.split('\n');
    expect(lines.join('\n')).toMatchInlineSnapshot(`
      "export const everythingElseWorkflow = defineWorkflow(
        {
          id: 'everything-else',
          name: 'It\\'s all here',
          version: '2.1',
          description: 'Two\\nlines, and "quotes".',
          metadata: { tags: ['a'] },
          settings: { timeout: 1000 },
          triggers: [{ id: 'hook', type: 'webhook', config: { scheme: 'github', filter: 'body.x == \\'y\\'' } }],
          variables: {
            number: Type.Number(),
            name: Type.String({ description: 'Who.', default: 'Ada' }),
            secret: Type.Optional(Type.String({ sensitive: true })),
            list: Type.Array(Type.Unknown()),
            'odd-name': Type.Boolean({ default: false }),
          },
        },
        ({ node, variables }) => {
          const oneStep = node('one', 'core.identity', {
            notes: 'First.',
            retry: { maxRetries: 3, delayMs: 10 },
            timeoutMs: 500,
            inputs: {
              n: variables.number,
              o: variables['odd-name'],
              s: variables.secret,
              fixed: { a: [1, null, 'x'] },
            },
          });
          const twoStep = node('two', 'acme.own', { config: { deep: { yes: true } }, inputs: { x: oneStep.output('n') } });
          const askStep = node('ask', 'core.approvalGate', { config: { title: 'Go on?' }, after: when(twoStep, 'nodes.two.total > 1.0') });
          node('keep', 'core.setVariable', { config: { name: 'name' }, inputs: { value: cel('nodes.one.n + 1') }, after: ended(askStep) });
          node('sorry', 'core.noop', { name: 'Sorry', position: { x: 7, y: 9 }, after: ifFailed(twoStep) });
          node('all', 'core.noop', { after: [oneStep, twoStep] });
        },
      );
      "
    `);
    expect(await made(everything)).toEqual(everything);
  });

  const node = { id: 'a', typeId: 'core.noop' };
  const odd: readonly [string, AuthoredWorkflow][] = [
    [
      'a cycle',
      {
        id: 'cycle',
        version: '1',
        nodes: [node, { ...node, id: 'b' }],
        edges: [
          { sourceNodeId: 'a', targetNodeId: 'b' },
          { sourceNodeId: 'b', targetNodeId: 'a' },
        ],
      },
    ],
    [
      'edges with names',
      {
        id: 'named',
        version: '1',
        nodes: [node, { ...node, id: 'b' }],
        edges: [{ id: 'e1', sourceNodeId: 'a', targetNodeId: 'b' }],
      },
    ],
    [
      'an order of its own',
      {
        id: 'order',
        version: '1',
        nodes: [{ ...node, id: 'b' }, node],
        edges: [{ sourceNodeId: 'a', targetNodeId: 'b' }],
      },
    ],
    [
      'a variable that nobody declares',
      {
        id: 'undeclared',
        version: '1',
        nodes: [{ ...node, inputs: { x: { type: 'variable', variableName: 'x' } } }],
      },
    ],
  ];
  it.each(odd)('is a constant where steps cannot say it: %s', async (_what, authored) => {
    const definition = completeWorkflow(authored);
    expect(workflowSource(definition).text).toContain(': AuthoredWorkflow = {');
    expect(await made(definition)).toEqual(definition);
  });

  const chained = (id: string, ids: readonly string[]): WorkflowDefinition =>
    completeWorkflow({
      id,
      version: '1',
      nodes: ids.map((each) => ({ ...node, id: each })),
      edges: ids.slice(1).map((each, index) => ({ sourceNodeId: ids[index]!, targetNodeId: each })),
    });
  it.each([
    ['steps', chained('many', ['a-b', 'a_b', 'ä', 'ö', 'aB2', 'aBStep', 'end'])],
    ['the workflow and what its file imports', chained('define', ['a', 'b'])],
  ])('numbers names that ids have in common: %s', async (_what, definition) => {
    expect(workflowSource(definition).text).toContain('= defineWorkflow(');
    expect(await made(definition)).toEqual(definition);
  });
});
