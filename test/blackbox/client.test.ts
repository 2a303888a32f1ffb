import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient, OPERATIONS, RefusedError } from '../../src/client/index.ts';
import { platform } from '../../src/client/machine.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, waits } from '../support/interrupts.ts';
import { operationsOf } from '../support/operations.ts';
import { DatabaseProxy } from '../support/proxy.ts';
import { onOneStore } from '../support/stores.ts';

const CUTS = 20;

describe('the client', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost('sqlite', undefined, { conformance: false });
  });
  afterAll(() => host?.stop());

  it('has a method for every operation of the OpenAPI document, and for nothing else', async () => {
    const served = (await operationsOf(host.anonymous)).map(({ operationId, method, path, hasBody, raw }) => {
      const hasQuery = raw.parameters.some((parameter: { in: string }) => parameter.in === 'query');
      const takes = hasBody && hasQuery ? 'both' : hasBody ? 'body' : hasQuery ? 'query' : undefined;
      return [operationId, `${method} ${path}`, takes];
    });
    const known = Object.entries(OPERATIONS).map(([name, { method, path, takes }]) => [
      name,
      `${method} ${path}`,
      takes,
    ]);
    expect(known.sort()).toEqual(served.sort());
  });
});

onOneStore('the client', (host) => {
  const client = (who: keyof typeof KEYS = 'editor', url = host().url) => createClient({ url, key: KEYS[who].key });

  it('starts a run, waits for it and walks the list of runs', async () => {
    const workflowId = await register(host().as('editor'), workflow([node('a')]));
    const started = await Promise.all([1, 2, 3].map(() => client().createRun({ workflowId })));
    for (const { runId } of started) expect((await client().waitForRun(runId)).status).toBe('completed');
    const listed: string[] = [];
    for await (const { runId } of client().each('listRuns', { workflowId, limit: 1 })) listed.push(runId);
    expect(listed.sort()).toEqual(started.map(({ runId }) => runId).sort());
  });

  it('waits for a person to be asked, answers, and follows the run to its end', async () => {
    const workflowId = await register(host().as('editor'), workflow([approval('gate')]));
    const { runId } = await client().createRun({ workflowId });
    const asked = await client().waitForRun(runId, { until: ({ interrupt }) => interrupt !== undefined });
    expect(asked.interrupt).toMatchObject({ kind: 'approval', nodeId: 'gate' });
    await client().resolveInterruptByRun(runId, 'gate', { resumeValue: { action: 'accept' } });
    const types: string[] = [];
    for await (const { type } of client().followRun(runId)) types.push(type);
    expect(types.at(-1)).toBe('run.completed');
  });

  it('tells a refusal by its code, and what it would take', async () => {
    const error = await client('viewer')
      .createRun({ workflowId: 'any' })
      .then(undefined, (thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({ status: 403, code: 'forbidden', details: { scopeRequired: 'runs:create' } });
  });

  it('ends a stream and a wait with their signals', async () => {
    const workflowId = await register(host().as('editor'), workflow([approval('gate')]));
    const { runId } = await client().createRun({ workflowId });
    await waits(host().as('editor'), runId);
    const [following, waiting] = [new AbortController(), new AbortController()];
    const wait = client().waitForRun(runId, { signal: waiting.signal });
    const follow = (async () => {
      for await (const { type } of client().followRun(runId, { signal: following.signal })) {
        if (type === 'interrupt.requested') following.abort(new Error('seen enough'));
      }
    })();
    await expect(follow).rejects.toThrow('seen enough');
    waiting.abort(new Error('waited enough'));
    await expect(wait).rejects.toThrow('waited enough');
  });

  it(`follows a run through ${CUTS} cut connections: every event once, in order`, async () => {
    const ids = Array.from({ length: CUTS }, (_, index) => `gate${index}`);
    const gates = ids.map((id) => approval(id));
    const workflowId = await register(host().as('editor'), workflow(gates, line(...ids)));
    const proxy = await DatabaseProxy.open(host().url);
    let connections = 0;
    const machine = {
      ...platform,
      chance: () => 0,
      fetch: (...asked: Parameters<typeof platform.fetch>) => {
        if (asked[0].includes('/events')) connections++;
        return platform.fetch(...asked);
      },
    };
    const follower = createClient({ url: proxy.url, key: KEYS.editor.key, machine });
    const { runId } = await client().createRun({ workflowId });
    const sequences: number[] = [];
    for await (const { sequence, type, nodeId = '' } of follower.followRun(runId, { streamMode: 'debug' })) {
      sequences.push(sequence);
      if (type !== 'interrupt.requested') continue;
      proxy.drop();
      // The run goes on only now, so that what comes next takes another connection.
      await client().resolveInterruptByRun(runId, nodeId, { resumeValue: { action: 'accept' } });
    }
    await proxy.cut();
    expect(connections).toBe(CUTS + 1);
    expect(sequences).toEqual((await host().as('editor').events(runId)).map(({ sequence }) => sequence));
  });

  it(`resumes a stream wherever ${CUTS} connections break off: every event once, in order`, async () => {
    const ids = Array.from({ length: 200 }, (_, index) => `n${index}`);
    const workflowId = await register(
      host().as('editor'),
      workflow(
        ids.map((id) => node(id)),
        line(...ids),
      ),
    );
    const { runId } = await client().createRun({ workflowId });
    await client().waitForRun(runId);
    const logged = (await host().as('editor').events(runId)).map(({ sequence }) => sequence);
    const proxy = await DatabaseProxy.open(host().url);
    const machine = { ...platform, chance: () => 0 };
    const breaks = fc.array(fc.integer({ min: 1, max: 4_000 }), { minLength: CUTS, maxLength: CUTS });
    await fc.assert(
      fc.asyncProperty(breaks, async (bytes) => {
        proxy.drop();
        proxy.dropAfter(bytes);
        const sequences: number[] = [];
        const follower = createClient({ url: proxy.url, key: KEYS.editor.key, machine });
        for await (const { sequence } of follower.followRun(runId, { streamMode: 'debug' })) sequences.push(sequence);
        expect(proxy.dropsLeft).toBe(0);
        expect(sequences).toEqual(logged);
      }),
      { numRuns: 20 },
    );
    await proxy.cut();
  });
});
