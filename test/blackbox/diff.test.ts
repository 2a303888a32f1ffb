import { describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { fixed, line, node, register, variable, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore, onOneStore, STORES } from '../support/stores.ts';

/** durability.md 5.9: how two runs differ, as a pure function of their logs. */

const schemas = loadSchemas();
const CREDENTIAL_WORDS = /sk-|api[_-]?key|secret|bearer\s/i;
const OTHER_WORDS = ['desk-lamp', 'api_key', 'my SECRET', 'Bearer x', 'APIKEY', 'ask-', 'bearer\tx'];

onOneStore('the diff of two runs', (host) => {
  const api = (): Api => host().as('editor');
  const diff = (a: string, b: string, by: Api = api()): Promise<Answer> => by.get(`/v1/runs/${a}:diff?against=${b}`);
  const done = async (workflowId: string, rest: object = {}): Promise<string> => {
    const runId = await api().run(workflowId, rest);
    await api().ended(runId);
    return runId;
  };
  const setting = async (value: unknown, more: object = {}): Promise<string> =>
    register(
      api(),
      workflow(
        [
          node('first'),
          node('set', 'core.setVariable', { config: { name: 'x' }, inputs: { value: fixed(value) } }),
          node('last'),
        ],
        line('first', 'set', 'last'),
        more,
      ),
    );

  it('is empty for a run and itself', async () => {
    const runId = await done('conformance-multi-node');
    const { status, body } = await diff(runId, runId);
    expect(status).toBe(200);
    expect(body).toEqual({ a: runId, b: runId, divergedAtSeq: null, eventDiffs: [], stateDiff: {}, truncated: false });
  });

  it('is empty for two runs that went the same way, though ids and times differ', async () => {
    const [a, b] = [await done('conformance-multi-node'), await done('conformance-multi-node')];
    expect((await diff(a, b)).body).toEqual({
      a,
      b,
      divergedAtSeq: null,
      eventDiffs: [],
      stateDiff: {},
      truncated: false,
    });
  });

  it('has the shape that the protocol closes, and its events are those of the logs', async () => {
    const [a, b] = [await done(await setting('one')), await done(await setting('two'))];
    const { body } = await diff(a, b);
    expect(schemas.diff(body)).toEqual([]);
    const [ours, theirs] = [await api().events(a), await api().events(b)];
    expect(body.divergedAtSeq).toBe(0);
    for (const { seq, op, aEvent, bEvent } of body.eventDiffs) {
      expect(op).toBe('changed');
      expect(aEvent).toEqual(ours[seq]);
      expect(bEvent).toEqual(theirs[seq]);
    }
  });

  it('begins where two runs of one workflow part, and tells what that came to', async () => {
    const workflowId = await register(
      api(),
      workflow(
        [
          node('first'),
          node('set', 'core.setVariable', { config: { name: 'x' }, inputs: { value: variable('given') } }),
          node('last'),
        ],
        line('first', 'set', 'last'),
      ),
    );
    const [a, b] = [await done(workflowId, { inputs: { given: 1 } }), await done(workflowId, { inputs: { given: 2 } })];
    const { body } = await diff(a, b);
    const changedAt = (await api().events(a)).find(({ type }) => type === 'variable.changed').sequence;
    expect(body).toMatchObject({ divergedAtSeq: changedAt, truncated: false });
    expect(body.eventDiffs[0]).toMatchObject({ seq: changedAt, op: 'changed' });
    expect(body.stateDiff).toMatchObject({
      variables: { given: { a: 1, b: 2 }, x: { a: 1, b: 2 } },
      nodes: { set: { inputs: { value: { a: 1, b: 2 } } } },
    });
    expect(body.stateDiff.status).toBeUndefined();
  });

  it('tells what the same work took each of them', async () => {
    const waiting = (delayMs: number): Promise<string> => done('conformance-delay', { inputs: { delayMs } });
    const a = await waiting(1);
    const { createdAt, completedAt } = (await api().get(`/v1/runs/${a}`)).body;
    const longer = Date.parse(completedAt) - Date.parse(createdAt) + 100;
    const b = await waiting(longer);
    const { durationMs } = (await diff(a, b)).body.stateDiff;
    expect(durationMs.b).toBeGreaterThanOrEqual(longer);
    expect(durationMs.delta).toBe(durationMs.b - durationMs.a);
  });

  it('tells what only the longer log has, the other way round for the other way round', async () => {
    const short = await register(api(), workflow([node('a')]));
    const long = await register(api(), workflow([node('a'), node('b')], line('a', 'b')));
    const [a, b] = [await done(short), await done(long)];
    const [there, back] = [(await diff(a, b)).body, (await diff(b, a)).body];
    const [ours, theirs] = [await api().events(a), await api().events(b)];
    const added = there.eventDiffs.filter(({ op }: { op: string }) => op === 'added');
    expect(added.map(({ seq }: { seq: number }) => seq)).toEqual(
      theirs.slice(ours.length).map(({ sequence }) => sequence),
    );
    for (const each of added) expect(each).not.toHaveProperty('aEvent');
    const removed = back.eventDiffs.filter(({ op }: { op: string }) => op === 'removed');
    expect(removed.map(({ aEvent }: Answer['body']) => aEvent)).toEqual(
      added.map(({ bEvent }: Answer['body']) => bEvent),
    );
    expect(back.divergedAtSeq).toBe(there.divergedAtSeq);
    expect(there.stateDiff).toMatchObject({ nodes: { b: { status: { b: 'completed' } } } });
  });

  it('tells a failed run from one that went well', async () => {
    const [a, b] = [await done('conformance-noop'), await done('conformance-failure')];
    const { body } = await diff(a, b);
    expect(body.stateDiff).toMatchObject({
      status: { a: 'completed', b: 'failed' },
      error: { b: { code: expect.any(String) } },
    });
    expect(schemas.diff(body)).toEqual([]);
  });

  it('goes as far as a run in flight has come, and says so', async () => {
    const workflowId = await register(
      api(),
      workflow([node('a'), node('gate', 'core.approvalGate', { config: { title: 'Go on?' } })], line('a', 'gate')),
    );
    const [a, b] = [await api().run(workflowId), await api().run(workflowId)];
    for (const runId of [a, b]) await api().until(runId, ({ status }) => status === 'waiting-approval');
    expect((await diff(a, a)).body).toMatchObject({ divergedAtSeq: null, eventDiffs: [], truncated: true });
    const waiting = await api().events(a);
    await api().post(`/v1/runs/${b}/interrupts/gate`, { resumeValue: { action: 'accept' } });
    await api().ended(b);
    const { body } = await diff(a, b);
    expect(body.truncated).toBe(true);
    expect(body.eventDiffs.every(({ seq }: { seq: number }) => seq < waiting.length)).toBe(true);
    expect(body.stateDiff).toMatchObject({ status: { a: 'waiting-approval', b: 'completed' } });
  });

  it('of long logs names where they part and no more differences than it can show', async () => {
    const tokens = (word: string): string[] => Array.from({ length: 1_500 }, (_, index) => `${word} ${index}`);
    const say = async (word: string, promptTokens: number): Promise<string> => {
      const usage = { promptTokens, completionTokens: 7, totalTokens: promptTokens + 7 };
      const configurable = { mockProvider: { id: 'stream-text', config: { tokens: tokens(word), usage } } };
      const by = host().as('test');
      const runId = await by.run('conformance-stream-text', { configurable });
      await by.ended(runId);
      return runId;
    };
    const [a, b] = [await say('this', 3), await say('that', 5)];
    const { body } = await diff(a, b, host().as('test'));
    expect(body.truncated).toBe(true);
    expect(body.eventDiffs).toHaveLength(1_000);
    expect(body.eventDiffs[0].seq).toBe(body.divergedAtSeq);
    expect(body.stateDiff.inputTokens).toEqual({ a: 3, b: 5, delta: 2 });
    expect(body.stateDiff.outputTokens).toBeUndefined();
    expect((await diff(a, a, host().as('test'))).body.truncated).toBe(false);
  });

  it('tells no word that goes with credentials, in names and in values', async () => {
    const workflowId = await setting({ ...Object.fromEntries(OTHER_WORDS.map((word) => [word, word])) });
    const inputs = Object.fromEntries(OTHER_WORDS.map((word, index) => [`${word} ${index}`, [word, { [word]: word }]]));
    const [a, b] = [await done(workflowId, { inputs }), await done('conformance-noop', { inputs: { plain: 'words' } })];
    const { body } = await diff(a, b);
    expect(JSON.stringify(body.stateDiff)).not.toMatch(CREDENTIAL_WORDS);
    expect(JSON.stringify(body.stateDiff)).toContain('[REDACTED]');
    expect(body.stateDiff.variables).toMatchObject({ plain: { b: 'words' } });
  });

  it('shows nothing of what the definition marks as sensitive', async () => {
    const workflowId = await setting('shown', {
      variables: [
        { name: 'pin', type: 'string', sensitive: true },
        { name: 'x', type: 'string', sensitive: true },
      ],
    });
    const [a, b] = [
      await done(workflowId, { inputs: { pin: 'walrus-one' } }),
      await done(workflowId, { inputs: { pin: 'walrus-two' } }),
    ];
    const { text, body } = await diff(a, b);
    expect(text).not.toContain('walrus');
    expect(body.divergedAtSeq).toBeNull();
  });

  it('is refused without a run to compare with, for strangers and without the scope', async () => {
    const runId = await done('conformance-noop');
    const workspaceRun = await host().as('workspace').run('conformance-noop');
    const foreign = await host().as('other').run('conformance-noop');
    expectRefusal(await api().get(`/v1/runs/${runId}:diff`), 400, 'validation_error');
    expectRefusal(await api().get(`/v1/runs/${runId}:diff?against=`), 400, 'validation_error');
    expectRefusal(await api().get(`/v1/runs/${runId}:diff?against=${'x'.repeat(129)}`), 400, 'validation_error');
    expectRefusal(await diff(runId, 'run-nobody-knows'), 404, 'not_found');
    expectRefusal(await diff('run-nobody-knows', runId), 404, 'not_found');
    expectRefusal(await diff(runId, foreign), 404, 'not_found');
    expectRefusal(await diff(foreign, runId), 404, 'not_found');
    expectRefusal(await diff(runId, runId, host().as('other')), 404, 'not_found');
    expectRefusal(await diff(workspaceRun, runId, host().as('workspace')), 404, 'not_found');
    expectRefusal(await diff(runId, runId, host().as('nothing')), 403, 'forbidden');
    expectRefusal(await diff(runId, runId, host().anonymous), 401, 'unauthenticated');
    expectRefusal(await api().post(`/v1/runs/${runId}:diff?against=${runId}`), 405, 'method_not_allowed');
  });
});

onEachStore('where a run comes from', (host) => {
  const api = (): Api => host().as('editor');
  const ancestry = (runId: string, by: Api = api()): Promise<Answer> => by.get(`/v1/runs/${runId}/ancestry`);

  it('is nowhere for a run that a caller started, and the host says who it is', async () => {
    const runId = await api().run('conformance-noop');
    const { status, body } = await ancestry(runId);
    expect(status).toBe(200);
    const { body: discovery } = await api().get('/.well-known/openwop');
    const { crossHostCausation } = discovery.multiAgent.executionModel;
    expect(crossHostCausation).toMatchObject({ supported: true, ancestryEndpointSupported: true });
    expect(body).toEqual({ runId, hostId: crossHostCausation.hostId, parent: null });
    expect(schemas.ancestry(body)).toEqual([]);
  });

  it('is the run whose node started it', async () => {
    const child = await register(api(), workflow([node('a')]));
    const parent = await register(
      api(),
      workflow([node('call', 'core.subWorkflow', { config: { workflowId: child, waitForCompletion: true } })]),
    );
    const runId = await api().run(parent);
    const { childRuns } = await api().ended(runId);
    const { body } = await ancestry(childRuns[0].runId);
    const { hostId } = body;
    expect(body).toEqual({
      runId: childRuns[0].runId,
      hostId,
      parent: { runId, hostId, cause: 'core.subWorkflow' },
    });
    expect(schemas.ancestry(body)).toEqual([]);
    expect((await ancestry(runId)).body).toEqual({ runId, hostId, parent: null });
  });

  it('is told to those who may see the run, and to nobody else', async () => {
    const runId = await api().run('conformance-noop');
    expect((await ancestry(runId, host().as('viewer'))).status).toBe(200);
    expectRefusal(await ancestry('run-nobody-knows'), 404, 'not_found');
    expectRefusal(await ancestry(runId, host().as('other')), 404, 'not_found');
    expectRefusal(await ancestry(runId, host().as('nothing')), 403, 'forbidden');
    expectRefusal(await ancestry(runId, host().anonymous), 401, 'unauthenticated');
  });
});

describe.each(STORES)('the name of an installation, on %s', (kind) => {
  it('is the same after a restart, another for another one, and says nothing of the machine', async () => {
    const folder = freshFolder();
    const first = await startTestHost(kind, inject('postgresUrl'), { dataFolder: folder.path });
    const names: string[] = [];
    const note = async (host: TestHost): Promise<void> => {
      const runId = await host.as('editor').run('conformance-noop');
      names.push((await host.as('editor').get(`/v1/runs/${runId}/ancestry`)).body.hostId);
      await host.stop();
    };
    await note(first);
    await note(await first.another());
    await note(await startTestHost(kind, inject('postgresUrl')));
    folder.remove();
    expect(names[0]).toMatch(/^capstan-[a-z0-9]{22}$/);
    expect(names[1]).toBe(names[0]);
    expect(names[2]).not.toBe(names[0]);
  });
});
