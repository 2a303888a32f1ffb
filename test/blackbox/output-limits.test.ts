import { describe, expect, inject, it } from 'vitest';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import {
  connection,
  edge,
  expression,
  fixed,
  line,
  node,
  register,
  variable,
  workflow,
} from '../support/definitions.ts';
import { spawnHost } from '../support/process.ts';
import { onOneStore, storesFor } from '../support/stores.ts';

type Body = Answer['body'];

const LIMITS = { output: 100_000, variable: 20_000, state: 150_000, log: 400_000 };

/** A node that hands on a text of some length. */
const text = (id: string, length: number): WorkflowNode =>
  node(id, 'core.identity', { inputs: { value: fixed('x'.repeat(length)) } });

/** What each builder gets, so that a small input would become something huge. */
const EXPLOSIONS: readonly [string, Partial<WorkflowNode>, object][] = [
  [
    'core.openwop.data.array-map',
    { config: { template: 'y'.repeat(20_000) }, inputs: { array: variable('array') } },
    { array: Array.from({ length: 100_000 }, () => 0) },
  ],
  [
    'core.flow.aggregate-text',
    { config: { template: 'y'.repeat(20_000) }, inputs: { items: variable('array') } },
    { array: Array.from({ length: 100_000 }, () => 0) },
  ],
  [
    'core.flow.aggregate-text',
    { config: { separator: 'y'.repeat(20_000) }, inputs: { items: variable('array') } },
    { array: Array.from({ length: 100_000 }, () => 0) },
  ],
  [
    'core.openwop.data.string-format',
    { inputs: { template: fixed('{{a}}'.repeat(20_000)), a: variable('a') } },
    { a: 'z'.repeat(500_000) },
  ],
  [
    'core.openwop.data.json-stringify',
    { config: { indent: 10 }, inputs: { value: variable('deep') } },
    {
      deep: Array.from({ length: 50 }).reduce<unknown>(
        (inner) => [inner],
        Array.from({ length: 100_000 }, () => 0),
      ),
    },
  ],
  [
    'core.openwop.data.csv-parse',
    { inputs: { text: variable('text') } },
    { text: `${Array.from({ length: 50_000 }, (_, column) => `c${column}`).join(',')}\n${'x\n'.repeat(90_000)}` },
  ],
  [
    'core.openwop.data.csv-stringify',
    { inputs: { rows: variable('rows'), headers: variable('headers') } },
    { rows: Array.from({ length: 100_000 }, () => ({})), headers: Array.from({ length: 100_000 }, () => 'h') },
  ],
  [
    'core.flow.merge',
    { config: { mode: 'multiplex' } },
    {
      a: Array.from({ length: 300 }, () => ({ a: 'a'.repeat(1_000) })),
      b: Array.from({ length: 300 }, () => ({ b: 'b'.repeat(1_000) })),
    },
  ],
  [
    'core.flow.merge',
    { config: { mode: 'combine-by-position' }, inputs: { a: variable('texts'), b: fixed([]) } },
    { texts: ['t'.repeat(900_000)] },
  ],
  [
    'core.openwop.data.array-group-by',
    {
      config: {
        keyPath: 'k',
        aggregations: Array.from({ length: 32 }, (_, index) => ({ outputKey: `o${index}`, op: 'array' })),
      },
      inputs: { array: variable('array') },
    },
    { array: Array.from({ length: 300 }, () => ({ k: 1, v: 'v'.repeat(500) })) },
  ],
  ['vendor.capstan.code.javascript', { config: { code: "return { text: 'x'.repeat(500000) };" } }, {}],
];

onOneStore(
  'output limits',
  (host) => {
    const api = (): Api => host().as('editor');
    const ended = async (workflowId: string, inputs: object = {}): Promise<Body> =>
      api().ended(await api().run(workflowId, { inputs }));
    const logOf = async (runId: string): Promise<number> => JSON.stringify(await api().events(runId)).length;

    it.each(EXPLOSIONS)('%s fails before its output is built', async (typeId, more, inputs) => {
      const id = await register(api(), workflow([node('grow', typeId, more)]));
      const run = await ended(id, inputs);
      expect(run).toMatchObject({ status: 'failed', error: { code: 'output_limit_exceeded' } });
      expect(run.nodeStates.grow.error.message).toContain('100000 characters');
      expect(await logOf(run.runId)).toBeLessThan(10_000);
    });

    it('an output, a variable and a channel up to the limit pass, and one beyond it fails its node alone', async () => {
      const set = (length: number): WorkflowNode =>
        node('set', 'core.setVariable', { config: { name: 'v' }, inputs: { value: fixed('x'.repeat(length)) } });
      const write = (length: number): WorkflowNode =>
        node('write', 'core.channelWrite', {
          config: { channelName: 'c', reducer: 'append' },
          inputs: { value: fixed('x'.repeat(length)) },
        });
      const fits = await register(api(), workflow([text('a', 99_000), set(9_000), write(9_000)]));
      expect(await ended(fits)).toMatchObject({ status: 'completed' });
      for (const [large, what] of [
        [text('a', 100_001), 'The output'],
        [set(20_001), 'The variable "v"'],
        [write(20_001), 'The write to channel "c"'],
      ] as const) {
        const definition = workflow([large, node('rescue')], [edge(large.id, 'rescue', { triggerRule: 'any_failed' })]);
        const run = await ended(await register(api(), definition));
        expect(run.nodeStates[large.id].error).toMatchObject({ code: 'output_limit_exceeded', retryable: false });
        expect(run.nodeStates[large.id].error.message).toContain(what);
        expect(run).toMatchObject({ status: 'completed', nodeStates: { rescue: { status: 'completed' } } });
      }
    });

    it('the state of a run has a limit over all its nodes', async () => {
      const id = await register(
        api(),
        workflow([text('a', 70_000), text('b', 70_000), text('c', 70_000)], line('a', 'b', 'c')),
      );
      const run = await ended(id);
      expect(run).toMatchObject({ status: 'failed', error: { code: 'output_limit_exceeded' } });
      expect(run.nodeStates.c.error.message).toContain('The state of the run');
      expect(run.nodeStates.b.status).toBe('completed');
    });

    it('the log of a run has a limit, however small its state is', async () => {
      const count = 40;
      const set = Array.from({ length: count }, (_, index) =>
        node(`s${index}`, 'core.setVariable', {
          config: { name: 'v' },
          inputs: { value: fixed(String(index % 10).repeat(15_000)) },
        }),
      );
      const id = await register(api(), workflow(set, line(...set.map((each) => each.id))));
      const run = await ended(id);
      expect(run).toMatchObject({ status: 'failed', error: { code: 'output_limit_exceeded' } });
      expect(run.error.message).toContain('The log of the run');
      expect(await logOf(run.runId)).toBeLessThan(LIMITS.log + 50_000);
    });

    it('a replay ends like its source', async () => {
      const grow = node('grow', 'core.openwop.data.array-map', {
        config: { template: '{{a}}{{a}}' },
        inputs: { array: expression('[{"a": inputs.a}]') },
      });
      const id = await register(api(), workflow([grow, node('after')], line('grow', 'after')));
      const run = await ended(id, { a: 'x'.repeat(60_000) });
      const fork = await api().post(`/v1/runs/${run.runId}:fork`, { mode: 'replay', fromSeq: 0 });
      const replay = await api().ended(fork.body.runId);
      expect(replay).toMatchObject({ status: 'failed', error: { code: 'output_limit_exceeded' } });
      const types = async (runId: string): Promise<string[]> => (await api().events(runId)).map(({ type }) => type);
      expect(await types(replay.runId)).toEqual(await types(run.runId));
    });

    it('what fits passes through a line of nodes unchanged', async () => {
      const id = await register(
        api(),
        workflow(
          [
            node('map', 'core.openwop.data.array-map', {
              config: { template: 'Hello {{name}}' },
              inputs: { array: variable('people') },
            }),
            node('join', 'core.flow.aggregate-text', {
              config: { separator: ', ' },
              inputs: { items: connection('map', 'array') },
            }),
          ],
          line('map', 'join'),
        ),
      );
      const run = await ended(id, { people: [{ name: 'Ada' }, { name: 'Bo' }] });
      expect(run.nodeStates.join.outputs).toEqual({ text: 'Hello Ada, Hello Bo', count: 2 });
    });
  },
  { outputLimits: LIMITS, maxRequestBodyBytes: 4_194_304 },
);

describe.each(storesFor('a run that would use up all memory'))('a run that would use up all memory, on %s', (kind) => {
  it('fails alone, on a host with the default limits and little memory', async () => {
    const folder = freshFolder();
    const store = kind === 'postgres' ? { DATABASE_URL: await migratedDatabase(inject('postgresUrl')!) } : {};
    const host = await spawnHost({
      CAPSTAN_DATA: folder.path,
      NODE_OPTIONS: '--max-old-space-size=256',
      ...store,
    });
    const api = host.as('editor');
    try {
      const id = await register(
        api,
        workflow([
          node('map', 'core.openwop.data.array-map', {
            config: { template: 'y'.repeat(20_480) },
            inputs: { array: variable('array') },
          }),
        ]),
      );
      const runs = await Promise.all(
        Array.from({ length: 5 }, () => api.run(id, { inputs: { array: Array(100_000).fill(0) } })),
      );
      for (const runId of runs) {
        expect(await api.ended(runId)).toMatchObject({ error: { code: 'output_limit_exceeded' } });
      }
    } finally {
      host.signal('SIGKILL');
      await host.exit;
      folder.remove();
    }
  });
});
