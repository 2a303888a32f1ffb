import { describe, expect, it } from 'vitest';
import type { EdgeCondition } from '../../src/protocol/running/workflows.ts';
import type { Api } from '../support/api.ts';
import { edge, expression, fixed, node, register, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { onOneStore } from '../support/stores.ts';

/**
 * Goal: what one caller sends cannot keep the others waiting, however much work it asks for.
 * Method: each attack is sent once. It is refused, or others are served before it is answered.
 */

/** A thread has used up its processor time by then, also on a machine with much else to do. */
const STARVED_MS = 120_000;
const SCHEDULES = '/v1/host/capstan/schedules';
const VALIDATE = 'core.openwop.data.json-schema-validate';

/** 45 definitions, each of which refers to the next one twice. */
const DOUBLING = {
  $ref: '#/$defs/d0',
  $defs: {
    ...Object.fromEntries(
      Array.from({ length: 45 }, (_, level) => {
        const next = { $ref: `#/$defs/d${level + 1}` };
        return [`d${level}`, { allOf: [next, next] }];
      }),
    ),
    d45: { type: 'object' },
  },
};
/** Each level of a value doubles the work, so that only the value shows what it costs. */
const RECURSIVE = { properties: { next: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } };

function chain(levels: number): object {
  let value: object = {};
  for (let level = 0; level < levels; level++) value = { next: value };
  return value;
}

onOneStore('costly input', (host) => {
  const api = (): Api => host().as('editor');

  /** The names in the order in which they were answered. */
  async function order(...requests: readonly (readonly [string, () => Promise<unknown>])[]): Promise<string[]> {
    const answered: string[] = [];
    await Promise.all(requests.map(([name, send]) => send().then(() => answered.push(name))));
    return answered;
  }

  it('is refused if it is a schema with doubling references, wherever schemas are', async () => {
    const places = [
      workflow([node('a')], [], { configurableSchema: DOUBLING }),
      workflow([node('a')], [], { channels: { c: { reducer: 'append', schema: DOUBLING } } }),
      workflow([node('ask', 'core.interrupt', { config: { kind: 'custom', data: {}, resumeSchema: DOUBLING } })]),
    ];
    for (const definition of places) expectRefusal(await api().post(WORKFLOWS, definition), 422, 'validation_error');
    const inputs = { value: fixed({}), schema: fixed(DOUBLING) };
    const runId = await api().run(await register(api(), workflow([node('check', VALIDATE, { inputs })])));
    expect(await api().ended(runId)).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
  });

  it('fails the node if a schema takes too long with its value, and others run meanwhile', {
    timeout: 2 * STARVED_MS,
  }, async () => {
    const inputs = { value: fixed(chain(28)), schema: fixed(RECURSIVE) };
    const attack = await register(api(), workflow([node('check', VALIDATE, { inputs })]));
    const neighbour = host().as('other');
    const ordinary = await register(
      neighbour,
      workflow([node('check', VALIDATE, { inputs: { ...inputs, value: fixed(1) } })]),
    );
    const ended = async (by: Api, workflowId: string) => by.ended(await by.run(workflowId), STARVED_MS);
    expect(
      await order(
        [
          'attack',
          async () => expect(await ended(api(), attack)).toMatchObject({ error: { code: 'validation_error' } }),
        ],
        ['other', async () => expect(await ended(neighbour, ordinary)).toMatchObject({ status: 'completed' })],
      ),
    ).toEqual(['other', 'attack']);
  });

  it('is refused if there are too many schemas', async () => {
    const channels = Object.fromEntries(
      Array.from({ length: 1_200 }, (_, index) => [
        `c${index}`,
        { reducer: 'append', schema: { type: 'object', properties: { [`p${index}`]: { type: 'string' } } } },
      ]),
    );
    const answered = await order(
      [
        'attack',
        async () =>
          expectRefusal(await api().post(WORKFLOWS, workflow([node('a')], [], { channels })), 422, 'validation_error'),
      ],
      ['other', async () => expect((await api().get('/healthz')).status).toBe(200)],
    );
    expect(answered).toEqual(['other', 'attack']);
  });

  it('is reported with ten problems, however many there are', async () => {
    const inputs = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`p${index}`, fixed(1)]));
    const right = node('right', 'core.noop', { inputs });
    const wrong = Array.from({ length: 1_000 }, (_, index) => ({ id: `n${index}`, typeId: 7 }));
    const refused = await api().post(WORKFLOWS, { ...workflow([right]), nodes: [right, ...wrong] });
    expectRefusal(refused, 422, 'validation_error');
    expect(refused.body.details.fields).toHaveLength(10);
  });

  it('counts as false where it is too long for the pattern of a condition', async () => {
    const condition: EdgeCondition = { type: 'regex', left: 'text', right: '^[a-z ]{1,200}$' };
    const format = node('a', 'core.openwop.data.string-format', {
      inputs: { template: fixed('{{x}}'), x: expression('inputs.x') },
    });
    const id = await register(api(), workflow([format, node('b')], [edge('a', 'b', { condition })]));
    const run = await api().ended(await api().run(id, { inputs: { x: 'a'.repeat(3_000) } }));
    expect(run).toMatchObject({ status: 'completed', nodeStates: { b: { status: 'skipped' } } });
  });

  it('counts as false where it is the key that a condition looks for', async () => {
    const condition: EdgeCondition = { type: 'expression', expression: '{"a": 1}[inputs.k] == 1' };
    const id = await register(api(), workflow([node('a'), node('b')], [edge('a', 'b', { condition })]));
    const run = await api().ended(await api().run(id, { inputs: { k: 'Z'.repeat(70_000) } }));
    expect(run).toMatchObject({ status: 'completed', nodeStates: { b: { status: 'skipped' } } });
  });

  it('counts as false from the condition on with which all conditions of a node take too long', async () => {
    const targets = Array.from({ length: 600 }, (_, index) => `t${index}`);
    const heavy = 'inputs.l.all(a, inputs.l.all(b, a >= b || a < b))';
    const condition: EdgeCondition = { type: 'expression', expression: heavy };
    const edges = targets.map((target) => edge('a', target, { condition }));
    const id = await register(api(), workflow([node('a'), ...targets.map((target) => node(target))], edges));
    const run = await api().ended(
      await api().run(id, { inputs: { l: Array.from({ length: 150 }, (_, item) => item) } }),
    );
    expect(run.status).toBe('completed');
    const skipped = targets.filter((target) => run.nodeStates[target].status === 'skipped');
    expect(skipped.length).toBeGreaterThan(targets.length / 2);
    expect(skipped.length).toBeLessThan(targets.length);
  });

  it('fails the expression that compiles a pattern for each item', async () => {
    const config = { expression: 'inputs.items.all(x, !"b".matches("(a{1,99}){1,4}" + x))' };
    const items = Array.from({ length: 10_000 }, (_, index) => `text ${index}`);
    const definition = workflow([
      node('eval', 'vendor.capstan.data.evaluate', { config, inputs: { items: fixed(items) } }),
    ]);
    const ended = await api().ended(await api().run(await register(api(), definition)));
    expect(ended).toMatchObject({ status: 'failed' });
    expect(JSON.stringify(ended)).toContain('steps');
  });

  describe('that is large', () => {
    const LARGE = 'x'.repeat(900_000);
    const COUNT = 11;
    const each = Array.from({ length: COUNT }, (_, index) => `large-${index}`);

    it('is listed in pages of some megabytes', async () => {
      const workflowId = await register(api(), workflow([node('a')]));
      const schedule = { workflowId, cron: '0 0 1 1 *', inputs: { text: LARGE } };
      for (const _ of each) expect((await api().post(SCHEDULES, schedule)).status).toBe(201);
      const sizes: number[] = [];
      for (let cursor = ''; cursor !== undefined; ) {
        const { body } = await api().get(
          `${SCHEDULES}?limit=200&workflowId=${workflowId}${cursor && `&cursor=${cursor}`}`,
        );
        sizes.push(body.items.length);
        cursor = body.nextCursor;
      }
      expect(sizes).toEqual([5, 5, 1]);
    });

    it('is listed as tools up to some megabytes, the last changed first, and can be used nevertheless', async () => {
      const variables = [{ name: 'text', type: 'string' as const, defaultValue: LARGE }];
      for (const id of each) await register(api(), workflow([node('a')], [], { id, variables }));
      const { body, text } = await api().get('/v1/tools');
      const listed = body.tools.filter(({ toolId }: { toolId: string }) => toolId.includes('large-'));
      expect(listed.map(({ toolId }: { toolId: string }) => toolId)).not.toContain('capstan.workflow:large-0');
      expect(listed).toHaveLength(9);
      expect(text.length).toBeLessThan(10_000_000);
      expect((await api().get('/v1/tools/capstan.workflow:large-0')).status).toBe(200);
    });

    it('is refused if it is a description', async () => {
      const described = (length: number) => workflow([node('a')], [], { description: 'x'.repeat(length) });
      expect((await api().post(WORKFLOWS, described(10_000))).status).toBe(201);
      expectRefusal(await api().post(WORKFLOWS, described(10_001)), 422, 'validation_error');
    });
  });
});
