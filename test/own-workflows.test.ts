import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  cel,
  defineNode,
  defineWorkflow,
  ended,
  ifFailed,
  type NodeException,
  type OwnWorkflow,
  retryable,
  Type,
  testWorkflow,
  when,
} from '../src/build/index.ts';

/**
 * Goal: a workflow in code is the definition that was meant, and what cannot be meant does not compile. Method: the
 * definitions are compared and run; each wrong line is expected to be an error of the compiler.
 */

const price = defineNode({
  typeId: 'acme.price',
  description: 'Looks up a price.',
  safety: 'pure',
  config: Type.Object({ currency: Type.String() }),
  inputs: Type.Object({ sku: Type.String(), discount: Type.Optional(Type.Number()) }),
  outputs: Type.Object({ amount: Type.Number(), note: Type.String() }),
  run: ({ inputs: { sku, discount = 0 }, config }) => ({ amount: sku.length - discount, note: config.currency }),
});
const failing = defineNode({
  typeId: 'acme.failing',
  description: 'Fails.',
  safety: 'pure',
  run: () => {
    throw new Error('broken');
  },
});
const config = { currency: 'EUR' };

const one = defineWorkflow(
  { id: 'one', variables: { sku: Type.String(), result: Type.Optional(Type.Number()) } },
  ({ node, set, variables }) => {
    const found = node('price', price, { config, inputs: { sku: variables.sku } });
    set('keep', variables.result, found.output('amount'));
  },
);

describe('a workflow in code', () => {
  it('has variables of the types of the protocol', () => {
    const kind = Type.Union([Type.Literal('new'), Type.Literal('old')]);
    const { variables } = defineWorkflow(
      { id: 'typed', variables: { kind, count: Type.Integer(), map: Type.Record(Type.String(), Type.Number()) } },
      ({ node }) => void node('a', 'core.noop', {}),
    );
    expect(variables.map(({ type }) => type)).toEqual(['string', 'number', 'object']);
    const mixed = { id: 'mixed', variables: { either: Type.Union([Type.String(), Type.Number()]) } };
    expect(() => defineWorkflow(mixed, () => {})).toThrow('The variable "either" needs a schema of one type');
  });

  it('is the definition of the protocol, the same every time', () => {
    const make = (): OwnWorkflow =>
      defineWorkflow(
        { id: 'priced', variables: { sku: Type.String(), limit: Type.Integer({ default: 3 }) } },
        ({ node, gate, variables }) => {
          const found = node('price', price, { config, inputs: { sku: variables.sku }, retry: { maxRetries: 2 } });
          const ask = gate('ask', { title: 'Buy it?', after: when(found, 'nodes.price.amount > variables.limit') });
          node('buy', 'core.identity', { inputs: { amount: found.output('amount'), by: 'Ada' }, after: ask });
        },
      );
    expect(make()).toEqual(make());
    expect(make()).toMatchObject({
      id: 'priced',
      version: '1.0',
      variables: [
        { name: 'sku', type: 'string', required: true },
        { name: 'limit', type: 'number', defaultValue: 3 },
      ],
      nodes: [
        {
          id: 'price',
          typeId: 'acme.price',
          position: { x: 0, y: 0 },
          inputs: { sku: { type: 'variable', variableName: 'sku' } },
          settings: { retry: { maxRetries: 2 } },
        },
        { id: 'ask', typeId: 'core.approvalGate', position: { x: 240, y: 0 }, config: { title: 'Buy it?' } },
        {
          id: 'buy',
          position: { x: 480, y: 0 },
          inputs: {
            amount: { type: 'connection', nodeId: 'price', outputKey: 'amount' },
            by: { type: 'static', value: 'Ada' },
          },
        },
      ],
    });
    expect(make().edges).toEqual([
      {
        id: 'price-ask',
        sourceNodeId: 'price',
        targetNodeId: 'ask',
        condition: { type: 'expression', expression: 'nodes.price.amount > variables.limit' },
      },
      { id: 'ask-buy', sourceNodeId: 'ask', targetNodeId: 'buy' },
    ]);
  });

  it('runs others, once or for each item, and goes on after failures', async () => {
    const all = defineWorkflow(
      {
        id: 'all',
        variables: { skus: Type.Array(Type.String()), first: Type.String(), sum: Type.Number({ default: 0 }) },
      },
      ({ node, subWorkflow, forEach, variables }) => {
        const single = subWorkflow('single', one, { inputs: { sku: variables.first }, outputs: { sum: 'result' } });
        const each = forEach('each', one, { items: variables.skus, as: 'sku', result: 'result', after: single });
        const fails = node('fails', failing, { after: each });
        node('caught', 'core.identity', { inputs: { fine: true }, after: ifFailed(fails) });
        node('report', 'core.identity', {
          inputs: { results: each.output('results'), sum: cel('variables.sum') },
          after: ended(fails),
        });
      },
    );
    const project = { nodes: [price, failing], workflows: [one, all] };
    const exceptions: NodeException[] = [];
    const { status, outputs } = await testWorkflow(project, all, {
      inputs: { skus: ['a', 'bbb'], first: 'four' },
      onException: (exception) => exceptions.push(exception),
    });
    expect(exceptions).toEqual([expect.objectContaining({ nodeId: 'fails', typeId: 'acme.failing' })]);
    expect((exceptions[0]!.error as Error).stack, 'where it came from').toContain('own-workflows.test.ts');
    expect(status).toBe('completed');
    expect(outputs.report).toEqual({ results: [1, 3], sum: 4 });
    expect(outputs.caught).toEqual({ fine: true });
  });

  it('shows and logs everything once, though its code is called again after each wait', async () => {
    const chatty = defineNode({
      typeId: 'acme.chatty',
      description: 'Talks while it waits.',
      safety: 'write',
      run: async ({ attempt, log, stream, sleep }) => {
        log(`begin ${attempt}`);
        stream('one ');
        await sleep(60_000);
        stream('two ');
        await sleep(60_000);
        log('end');
        if (attempt === 0) throw retryable('busy', 'Once more.');
        return {};
      },
    });
    const talk = defineWorkflow({ id: 'talk' }, ({ node }) => {
      node('chatty', chatty, { retry: { maxRetries: 1 } });
    });
    const { status, events } = await testWorkflow({ nodes: [chatty], workflows: [talk] }, talk);
    const shown = events.flatMap(({ type, payload }) => {
      if (type === 'log.appended') return [(payload as { message: string }).message];
      return type === 'output.chunk' ? [(payload as { chunk: string }).chunk] : [];
    });
    expect(status).toBe('completed');
    const attempt = (number: number) => [`begin ${number}`, 'one ', 'two ', 'end'];
    expect(shown).toEqual([...attempt(0), ...attempt(1)]);
  });

  it('waits for nobody in a test: days pass at once, and a question that is not answered ends it', async () => {
    const patient = defineWorkflow({ id: 'patient' }, ({ node, gate }) => {
      const month = node('month', 'core.delay', { config: { delayMs: 30 * 86_400_000 - 1_000 } });
      gate('ask', { title: 'Now?', after: month });
    });
    const unanswered = await testWorkflow({ workflows: [patient] }, 'patient');
    expect(unanswered).toMatchObject({ status: 'waiting-approval', question: { nodeId: 'ask', kind: 'approval' } });
  });

  it('has each step once, and no step that a condition would not stop', () => {
    const twice = () =>
      defineWorkflow({ id: 'twice' }, ({ node }) => {
        node('a', 'core.noop');
        node('a', 'core.noop');
      });
    expect(twice).toThrow('two steps called "a"');
    const bypassed = () =>
      defineWorkflow({ id: 'bypassed' }, ({ node }) => {
        const [used, asked] = [node('used', 'core.identity'), node('asked', 'core.identity')];
        node('b', 'core.identity', { inputs: { x: used.output('x') }, after: when(asked, 'false') });
      });
    expect(bypassed).toThrow('Place that step after used');
  });
});

describe('what does not compile', () => {
  it('is a wrong port, config, output, variable or type', () => {
    const wrong = (): OwnWorkflow =>
      defineWorkflow(
        { id: 'wrong', variables: { sku: Type.String(), maybe: Type.Optional(Type.String()) } },
        (flow) => {
          const { node, set, subWorkflow, forEach, variables } = flow;
          const inputs = { sku: variables.sku };
          // @ts-expect-error: there is no such port
          node('a', price, { config, inputs: { sku: 'x', colour: 'red' } });
          // @ts-expect-error: a port is missing
          node('b', price, { config, inputs: {} });
          // @ts-expect-error: the type of the port is another
          node('c', price, { config, inputs: { sku: 7 } });
          // @ts-expect-error: it may be missing, and the port needs it
          node('d', price, { config, inputs: { sku: variables.maybe } });
          // @ts-expect-error: the config is missing
          node('e', price, { inputs });
          // @ts-expect-error: the config has no such key
          node('f', price, { config: { currencies: 'EUR' }, inputs });
          const found = node('g', price, { config, inputs });
          // @ts-expect-error: there is no such output
          found.output('total');
          // @ts-expect-error: the output is a number, the port a text
          node('h', price, { config, inputs: { sku: found.output('amount') } });
          // @ts-expect-error: there is no such variable
          node('i', price, { config, inputs: { sku: variables.skus } });
          // @ts-expect-error: the variable is a text
          set('j', variables.sku, 7);
          // @ts-expect-error: the child has no such variable
          subWorkflow('k', one, { inputs: { sky: variables.sku } });
          // @ts-expect-error: the items are texts
          forEach('l', one, { items: [1, 2], as: 'sku' });
          // @ts-expect-error: a step is a value, not a name
          node('m', 'core.noop', { after: 'g' });
        },
      );
    expect(wrong).toBeTypeOf('function');
    // @ts-expect-error: the outputs are not those of the schema
    defineNode({ ...price, run: () => ({ amount: 'many', note: '' }) });
  });
});

describe('the page about projects', () => {
  it('shows the example as it is', () => {
    const page = readFileSync(new URL('../docs/projects.md', import.meta.url), 'utf8');
    for (const name of ['capstan.config.ts', 'workflows.ts', 'workflows.test.ts']) {
      expect(page).toContain(readFileSync(new URL(`../examples/project/${name}`, import.meta.url), 'utf8'));
    }
  });
});
