import { describe, expect, it } from 'vitest';
import { partsOf, readCorrection } from '../console/runs/correction.ts';
import { resolvedInputs } from '../console/runs/node-inputs.ts';
import { whyEnded } from '../console/runs/reasons.ts';
import { viewOf, warningsIn, withWorkerWaits } from '../console/runs/view.ts';
import type { RunEvent } from '../src/client/index.ts';
import type { RunSnapshot } from '../src/protocol/running/runs.ts';
import { connection, edge, expression, fixed, node, variable, workflow } from './support/definitions.ts';

/** Events of one node, a second apart. */
function logOf(...events: readonly (readonly [type: string, payload?: object])[]): RunEvent[] {
  return events.map(
    ([type, payload = {}], sequence) =>
      ({
        eventId: `e${sequence}`,
        runId: 'run-1',
        type,
        sequence,
        timestamp: new Date(sequence * 1_000).toISOString(),
        payload,
        ...(type.startsWith('run.') ? {} : { nodeId: 'a' }),
      }) as RunEvent,
  );
}

const refused = { code: 'refused', message: 'Not today.' };

describe('what the page shows of a log', () => {
  it('has each attempt with its end and its error, and failed stretches look failed', () => {
    const view = viewOf(
      logOf(
        ['run.started'],
        ['node.started', { attempt: 0 }],
        ['node.retried', { attempt: 1, lastError: refused }],
        ['node.started', { attempt: 1 }],
        ['node.completed', { outputs: { ok: true } }],
      ),
    );
    const { attempts, spans, error } = view.nodes.get('a')!;
    expect(attempts).toEqual([
      { sequence: 1, number: 0, from: 1_000, to: 2_000, end: 'failed', error: refused },
      { sequence: 3, number: 1, from: 3_000, to: 4_000, end: 'completed' },
    ]);
    expect(spans.map(({ state, end }) => [state, end])).toEqual([
      ['running', 'failed'],
      ['retrying', undefined],
      ['running', 'completed'],
    ]);
    expect(error).toBeUndefined();
  });

  it('counts an attempt that was waiting for an answer as one', () => {
    const { attempts } = viewOf(
      logOf(
        ['node.started', { attempt: 0 }],
        ['node.suspended'],
        ['node.resumed'],
        ['node.failed', { error: refused }],
      ),
    ).nodes.get('a')!;
    expect(attempts).toMatchObject([{ number: 0, end: 'failed', error: refused }]);
  });

  it('has an attempt without an outcome when its host went away', () => {
    const { attempts } = viewOf(logOf(['node.started', { attempt: 0 }], ['node.started', { attempt: 1 }])).nodes.get(
      'a',
    )!;
    expect(attempts.map(({ end }) => end)).toEqual(['lost', undefined]);
  });

  it('tells text of a model from what the code of a node streams', () => {
    const chunk = (meta: object) => viewOf(logOf(['output.chunk', { chunk: 'Hello', ...meta }])).nodes.get('a')!;
    expect(chunk({})).toMatchObject({ text: 'Hello', isModelText: false });
    expect(chunk({ meta: {} })).toMatchObject({ text: 'Hello', isModelText: true });
  });

  it('warns of what went wrong, and says of a skipped node that its condition failed', () => {
    const message =
      'The condition of the edge from "b" to "a" failed and counts as false: output.n > 1: no such key: n.';
    const view = viewOf(
      logOf(
        ['log.appended', { level: 'info', message: 'All is well.' }],
        ['log.appended', { level: 'warn', message, fields: { edgeId: 'b-a' } }],
        ['node.skipped', { reason: 'edge_condition_false' }],
      ),
    );
    expect(warningsIn(view)).toEqual([{ sequence: 1, level: 'warn', message, nodeId: 'a', edgeId: 'b-a' }]);
    const definition = workflow([node('b'), node('a')], [edge('b', 'a')]);
    expect(whyEnded(view.nodes.get('a')!, view, definition)).toContain('could not be evaluated');
    expect(whyEnded(view.nodes.get('a')!, { lines: [] }, definition)).toBe(
      'The condition of the edge that leads here was false.',
    );
  });

  it.each(['node.skipped', 'node.cancelled'])('has no reason of an earlier %s once the node runs', (type) => {
    const events = logOf([type, { reason: 'edge_condition_false' }], ['node.started', { attempt: 0 }]);
    expect(viewOf(events.slice(0, 1)).nodes.get('a')).toHaveProperty('reason', 'edge_condition_false');
    expect(viewOf(events).nodes.get('a')).not.toHaveProperty('reason');
  });

  it('lets a node wait that no worker has taken, and no longer once it is done', () => {
    const events = logOf(
      ['node.started', { attempt: 0 }],
      ['log.appended', { level: 'warn', message: 'waiting for a worker of shop.price' }],
      ['node.completed'],
    );
    const waiting = viewOf(events.slice(0, 2));
    expect(waiting.nodes.get('a')).toMatchObject({ state: 'running', lacksWorker: true });
    expect(warningsIn(waiting)).toEqual([]);
    const waits = [{ nodeId: 'a', typeId: 'shop.price', since: 0, isServed: false }];
    expect(withWorkerWaits(waiting, waits).nodes.get('a')).toMatchObject({
      state: 'waiting',
      spans: [{ state: 'suspended' }],
    });
    expect(viewOf(events).nodes.get('a')).toMatchObject({ state: 'completed', lacksWorker: false });
  });
});

describe('the inputs of a node', () => {
  const definition = workflow(
    [
      node('read', 'core.identity', { inputs: { order: variable('order') } }),
      node('charge', 'core.identity', {
        inputs: {
          order: connection('read', 'order'),
          currency: fixed('EUR'),
          total: expression('nodes.read.order.lines * 2.0'),
          key: variable('key'),
          keyLength: expression('size(variables.key)'),
        },
      }),
    ],
    [edge('read', 'charge')],
    {
      variables: [
        { name: 'order', type: 'object' },
        { name: 'key', type: 'string', sensitive: true },
      ],
    },
  );
  const order = { id: 7, lines: 3.5 };
  const run = {
    runId: 'run-1',
    workflowId: definition.id,
    status: 'completed',
    createdAt: new Date(0).toISOString(),
    inputs: { order, key: '[REDACTED]' },
  } satisfies RunSnapshot;
  const events = [
    { type: 'run.started', payload: { workflowId: definition.id } },
    { type: 'node.started', nodeId: 'read', payload: { nodeId: 'read', typeId: 'core.identity', attempt: 0 } },
    { type: 'node.completed', nodeId: 'read', payload: { nodeId: 'read', outputs: { order } } },
    { type: 'node.started', nodeId: 'charge', payload: { nodeId: 'charge', typeId: 'core.identity', attempt: 0 } },
  ].map((event, sequence) => ({
    ...event,
    runId: 'run-1',
    sequence,
    eventId: `e${sequence}`,
    timestamp: new Date(sequence).toISOString(),
  })) as RunEvent[];

  it('are the values that the attempt got, and what is masked stays so', () => {
    expect(resolvedInputs(run, events, definition, 'charge')).toEqual({
      declared: { order, currency: 'EUR', total: 7, key: '[REDACTED]', keyLength: '[REDACTED]' },
      delivered: { input: { order } },
    });
  });

  it('of a fork are resolved, too', () => {
    const fork = { ...run, forkedFrom: { runId: 'run-0', fromSeq: 2, mode: 'branch' as const } };
    expect(resolvedInputs(fork, events, definition, 'charge')?.declared).toMatchObject({ order, total: 7 });
  });

  it('are not known of a log that does not fit the definition', () => {
    expect(resolvedInputs(run, events.slice(1), definition, 'charge')).toBeUndefined();
  });
});

describe('a correction', () => {
  const outputs = { finishReason: 'stop', content: 'Dear customer, no.', usage: { totalTokens: 3 } };

  it('begins with the longest text of the output, and offers all of it and words', () => {
    expect(partsOf(outputs).map(({ name, isJson }) => [name, isJson])).toEqual([
      ['content', false],
      ['finishReason', false],
      ['everything', true],
      ['in words', false],
    ]);
    expect(partsOf({ last: outputs })[0]).toMatchObject({ name: 'content', text: 'Dear customer, no.' });
    expect(partsOf(undefined).map(({ name }) => name)).toEqual(['in words']);
    expect(partsOf({}).map(({ name }) => name)).toEqual(['in words']);
  });

  it('is what was changed, and JSON where the output is', () => {
    const [content, , everything, inWords] = partsOf(outputs);
    expect(readCorrection(content!, content!.text)).toEqual({ problem: 'Nothing is changed yet.' });
    expect(readCorrection(content!, 'Dear Ada, yes.')).toEqual({ correction: 'Dear Ada, yes.' });
    expect(readCorrection(everything!, '{ "content": "Yes." }')).toEqual({ correction: '{"content":"Yes."}' });
    expect(readCorrection(everything!, '{ "content": ')).toMatchObject({
      problem: expect.stringContaining('not JSON'),
    });
    expect(readCorrection(inWords!, ' ')).toEqual({ problem: 'Fill this in.' });
  });
});
