import { describe, expect, it } from 'vitest';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { writeStore } from '../support/database.ts';
import { edge, expression, line, node, register, unique, variable, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { approval, resolve, waitingRun } from '../support/interrupts.ts';
import { onStoresAtOnce } from '../support/stores.ts';

type Body = Answer['body'];

const forkOf = (api: Api, runId: string, body: object, headers: Record<string, string> = {}): Promise<Answer> =>
  api.post(`/v1/runs/${runId}:fork`, body, headers);

/** What two runs must have in common: everything but ids of their own and times. */
const shape = (events: readonly Body[]): object[] =>
  events.map(({ type, nodeId, payload }) => ({ type, nodeId, payload }));

onStoresAtOnce('forks', (host) => {
  const api = (): Api => host().as('editor');
  const ended = async (workflowId: string, rest: object = {}): Promise<{ runId: string; events: Body[] }> => {
    const runId = await api().run(workflowId, rest);
    await api().ended(runId);
    return { runId, events: await api().events(runId) };
  };
  const forked = async (runId: string, body: object): Promise<string> => {
    const answer = await forkOf(api(), runId, body);
    expect(answer.status, answer.text).toBe(201);
    return answer.body.runId;
  };
  const effects = workflow(
    [
      node('before'),
      node('effect', 'core.conformance.side-effect'),
      node('after', 'core.identity', {
        inputs: { given: { type: 'connection', nodeId: 'effect', outputKey: 'effectId' } },
      }),
    ],
    line('before', 'effect', 'after'),
  );

  it('are advertised with what they promise', async () => {
    const { body } = await host().anonymous.get('/.well-known/openwop');
    expect(body.replay).toEqual({
      supported: true,
      modes: ['replay', 'branch'],
      sideEffectSuppression: 'recorded-outcome',
      retention: { windowSeconds: expect.any(Number) },
    });
  });

  it.each(['replay', 'branch'])(
    'answer a %s with what was asked for, and the new run comes to its end',
    async (mode) => {
      const { runId } = await ended('conformance-noop');
      const answer = await forkOf(api(), runId, { mode, fromSeq: 0 });
      expect(answer.status).toBe(201);
      expect(answer.body).toEqual({
        runId: expect.stringMatching(/^run-[0-9a-z]{22}$/),
        sourceRunId: runId,
        fromSeq: 0,
        mode,
        status: expect.stringMatching(/^(pending|running)$/),
        eventsUrl: `${host().url}/v1/runs/${answer.body.runId}/events`,
      });
      expect(answer.body.runId).not.toBe(runId);
      expect((await api().ended(answer.body.runId)).status).toBe('completed');
    },
  );

  it('keep the inputs of their source that the overlay does not name', async () => {
    const variables = ['subject', 'plan'].map((name) => ({ name, type: 'string' as const, required: true }));
    const inputs = { subject: variable('subject'), plan: variable('plan') };
    const workflowId = await register(api(), workflow([node('a', 'core.identity', { inputs })], [], { variables }));
    const runId = await api().run(workflowId, { inputs: { subject: 'Help', plan: 'free' } });
    await api().ended(runId);
    const overlay = { inputs: { plan: 'pro' } };
    const branched = await forked(runId, { mode: 'branch', fromSeq: 0, runOptionsOverlay: overlay });
    const ended = await api().ended(branched);
    expect(ended.nodeStates.a.outputs).toEqual({ subject: 'Help', plan: 'pro' });
    expect(ended.inputs).toEqual({ subject: 'Help', plan: 'pro' });
  });

  it('begin anywhere: two replays from one place are equal to their source, and a branch shares its beginning', async () => {
    const { runId, events } = await ended('conformance-multi-node');
    for (let fromSeq = 0; fromSeq <= events.length; fromSeq++) {
      const [one, two, branch] = [
        await forked(runId, { mode: 'replay', fromSeq }),
        await forked(runId, { mode: 'replay', fromSeq }),
        await forked(runId, { mode: 'branch', fromSeq, runOptionsOverlay: {} }),
      ];
      for (const id of [one, two, branch]) expect((await api().ended(id)).status).toBe('completed');
      const [first, second, third] = [await api().events(one), await api().events(two), await api().events(branch)];
      expect(shape(first)).toEqual(shape(events));
      expect(shape(second)).toEqual(shape(first));
      expect(shape(third.slice(0, fromSeq))).toEqual(shape(events.slice(0, fromSeq)));
      expect(first.map(({ runId: owner }) => owner)).toEqual(first.map(() => one));
      expect(new Set([...first, ...second, ...events].map(({ eventId }) => eventId)).size).toBe(3 * events.length);
    }
    expect(await api().events(runId)).toEqual(events);
  });

  it('name their source, which lists them, newest first, and lists its own annotations alone', async () => {
    const { runId } = await ended('conformance-noop');
    await api().post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'flag' } });
    const replayed = await forked(runId, { mode: 'replay' });
    const branched = await forked(runId, { mode: 'branch', fromSeq: 2 });
    const { forkedFrom, forks: none } = await api().ended(branched);
    expect(forkedFrom).toEqual({ runId, fromSeq: 2, mode: 'branch' });
    expect(none).toBeUndefined();
    await api().ended(replayed);
    const source = (await api().get(`/v1/runs/${runId}`)).body;
    expect(source).not.toHaveProperty('forkedFrom');
    expect(source.forks).toEqual([branched, replayed].map((id) => ({ runId: id, status: 'completed' })));
    expect((await api().get(`/v1/runs/${branched}/annotations`)).body.annotations).toEqual([]);
  });

  it('replay what touched the world without touching it: its outcome is the recorded one', async () => {
    const { runId, events } = await ended(await register(api(), effects));
    const outputs = ({ nodeStates }: Body): Body => nodeStates.effect.outputs;
    const source = (await api().get(`/v1/runs/${runId}`)).body;
    for (const fromSeq of [0, 3, 4]) {
      const replayed = await api().ended(await forked(runId, { mode: 'replay', fromSeq }));
      expect(outputs(replayed)).toEqual(outputs(source));
      expect(shape(await api().events(replayed.runId))).toEqual(shape(events));
    }
    const branched = await api().ended(await forked(runId, { mode: 'branch', fromSeq: 3 }));
    expect(branched.status).toBe('completed');
    expect(outputs(branched)).not.toEqual(outputs(source));
  });

  it('fail what touches the world where the source has no outcome to go by, and repeat no cancellation', async () => {
    const runId = await api().run('conformance-replay-side-effect', { inputs: { delayMs: 2_000 } });
    await api().until(runId, ({ status }) => status === 'running');
    await api().post(`/v1/runs/${runId}/cancel`);
    const replayed = await api().ended(await forked(runId, { mode: 'replay' }));
    expect(replayed).toMatchObject({ status: 'failed', error: { code: 'replay_source_missing' } });
    const events = await api().events(replayed.runId);
    expect(events.map(({ type, nodeId }) => [type, nodeId])).toContainEqual(['node.completed', 'wait']);
    expect(events.map(({ type, nodeId }) => [type, nodeId])).toContainEqual(['node.failed', 'effect']);
    expect(events.map(({ type, nodeId }) => [type, nodeId])).not.toContainEqual(['node.completed', 'effect']);
    const runOptionsOverlay = { inputs: { delayMs: 1 } };
    const branched = await api().ended(await forked(runId, { mode: 'branch', fromSeq: 0, runOptionsOverlay }));
    expect(branched.status).toBe('completed');
  });

  it('go on to the cancellation, however many nodes there are', async () => {
    // More than one reading has events of.
    const many = Array.from({ length: 1_050 }, (_, index) => node(`n${index}`));
    const nodes = [...many, approval('go'), node('effect', 'core.conformance.side-effect'), approval('end')];
    const workflowId = await register(api(), workflow(nodes, line('go', 'effect', 'end')));
    const { runId } = await waitingRun(api(), workflowId);
    const waitsAt = (id: string, nodeId: string): Promise<Body> =>
      api().until(id, ({ interrupt }) => interrupt?.nodeId === nodeId);
    await resolve(api(), runId, 'go', { action: 'accept' });
    const before = await waitsAt(runId, 'end');
    await api().post(`/v1/runs/${runId}/cancel`);
    const replayed = await waitsAt(await forked(runId, { mode: 'replay' }), 'end');
    expect(replayed.nodeStates.effect.outputs).toEqual(before.nodeStates.effect.outputs);
  });

  it('prompt nobody again for what was answered, and somebody for what was not', async () => {
    const runId = await api().run('conformance-approval');
    await api().until(runId, ({ status }) => status === 'waiting-approval');
    const open = {
      replay: await forked(runId, { mode: 'replay' }),
      branch: await forked(runId, { mode: 'branch', fromSeq: 4 }),
    };
    const answer = { resumeValue: { action: 'accept' } };
    expect((await api().post(`/v1/runs/${runId}/interrupts/gate`, answer)).status).toBe(200);
    await api().ended(runId);
    const answered = await api().ended(await forked(runId, { mode: 'replay' }));
    expect(answered.status).toBe('completed');
    expect(shape(await api().events(answered.runId))).toEqual(shape(await api().events(runId)));
    for (const id of Object.values(open)) {
      await api().until(id, ({ status }) => status === 'waiting-approval');
      expect((await api().post(`/v1/runs/${id}/interrupts/gate`, answer)).status).toBe(200);
      expect((await api().ended(id)).status).toBe('completed');
    }
  });

  it('send for children anew on a branch, and take them as they were on a replay', async () => {
    const { runId, events } = await ended('conformance-subworkflow-parent');
    const started = events.findIndex(({ type }) => type === 'node.dispatched');
    const childOf = (log: readonly Body[]): string =>
      log.find(({ type }) => type === 'node.dispatched').payload.childRunId;
    const replayed = await forked(runId, { mode: 'replay', fromSeq: started });
    const branched = await forked(runId, { mode: 'branch', fromSeq: started });
    expect((await api().ended(replayed)).childRuns ?? []).toEqual([]);
    expect(childOf(await api().events(replayed))).toBe(childOf(events));
    expect((await api().ended(branched)).childRuns).toHaveLength(1);
    expect(childOf(await api().events(branched))).not.toBe(childOf(events));
  });

  it('run again with other inputs, options, tags and metadata where a branch says so', async () => {
    const definition = workflow(
      [node('a'), node('b', 'core.identity', { inputs: { name: variable('name') } })],
      line('a', 'b'),
      { variables: [{ name: 'name', type: 'string', defaultValue: 'first' }] },
    );
    const { runId } = await ended(await register(api(), definition), { tags: ['one'], metadata: { m: 1 } });
    const runOptionsOverlay = {
      inputs: { name: 'second' },
      tags: ['two'],
      metadata: { m: 2 },
      configurable: { 'acme.x': 1 },
    };
    const branched = await api().ended(await forked(runId, { mode: 'branch', fromSeq: 3, runOptionsOverlay }));
    expect(branched).toMatchObject({ status: 'completed', ...runOptionsOverlay });
    expect(branched.nodeStates.b.outputs).toEqual({ name: 'second' });
    const plain = await api().ended(await forked(runId, { mode: 'branch', fromSeq: 3 }));
    expect(plain).toMatchObject({ tags: ['one'], metadata: { m: 1 } });
    expect(plain.nodeStates.b.outputs).toEqual({ name: 'first' });
  });

  describe('of another version of the definition', () => {
    const versions = async (): Promise<{ runId: string; definition: WorkflowDefinition }> => {
      const definition = workflow(
        [node('a'), node('b', 'core.identity', { inputs: { x: expression('1') } })],
        line('a', 'b'),
      );
      await register(api(), definition);
      const { runId } = await ended(definition.id);
      const next = {
        ...definition,
        nodes: [definition.nodes[0]!, node('b', 'core.identity', { inputs: { x: expression('2') } })],
      };
      await register(api(), next);
      await register(api(), { ...definition, nodes: [node('c')], edges: [] });
      return { runId, definition };
    };

    it('go on by it, and otherwise by the one that their source began with', async () => {
      const { runId } = await versions();
      const resultOf = async (body: object): Promise<number> =>
        (await api().ended(await forked(runId, body))).nodeStates.b.outputs.x;
      expect(await resultOf({ mode: 'branch', fromSeq: 3 })).toBe(1);
      expect(await resultOf({ mode: 'replay', fromSeq: 3 })).toBe(1);
      expect(await resultOf({ mode: 'branch', fromSeq: 3, runOptionsOverlay: { workflowVersion: 2 } })).toBe(2);
    });

    it('are refused where there is none, or where it lacks a node that the history speaks of', async () => {
      const { runId } = await versions();
      const unknown = await forkOf(api(), runId, {
        mode: 'branch',
        fromSeq: 3,
        runOptionsOverlay: { workflowVersion: 9 },
      });
      expectRefusal(unknown, 422, 'validation_error');
      const lacking = await forkOf(api(), runId, {
        mode: 'branch',
        fromSeq: 3,
        runOptionsOverlay: { workflowVersion: 3 },
      });
      expectRefusal(lacking, 422, 'validation_error');
      expect(lacking.body.details.nodeId).toBe('a');
    });
  });

  it('can be forked themselves', async () => {
    const { runId, events } = await ended(await register(api(), effects));
    const replayed = await forked(runId, { mode: 'replay', fromSeq: 2 });
    await api().ended(replayed);
    const again = await forked(replayed, { mode: 'replay', fromSeq: 0 });
    expect((await api().ended(again)).status).toBe('completed');
    expect(shape(await api().events(again))).toEqual(shape(events));
  });

  it('of a run that goes on do not change it, and end by themselves', async () => {
    const runId = await api().run('conformance-delay', { inputs: { delayMs: 700 } });
    await api().until(runId, ({ status }) => status === 'running');
    const [replayed, branched] = [
      await forked(runId, { mode: 'replay' }),
      await forked(runId, { mode: 'branch', fromSeq: 2 }),
    ];
    for (const id of [runId, replayed, branched]) expect((await api().ended(id)).status).toBe('completed');
  });

  it('keep the owner of their source, whoever asks for them', async () => {
    const { runId } = await ended('conformance-noop');
    const answer = await forkOf(host().as('owner'), runId, { mode: 'branch', fromSeq: 0 });
    const { owner } = (await api().get(`/v1/runs/${answer.body.runId}`)).body;
    expect(owner).toEqual((await api().get(`/v1/runs/${runId}`)).body.owner);
    const audited = await api().get(`/v1/host/capstan/audit?action=run.fork&limit=200`);
    expect(audited.body.items).toContainEqual(
      expect.objectContaining({ actor: 'owner-of-alpha', action: 'run.fork', target: runId }),
    );
  });

  it('have their artifacts', async () => {
    const makes = node('make', 'core.identity', {
      inputs: { text: { type: 'static', value: 'report' } },
      artifactType: 'note',
    });
    const { runId, events } = await ended(
      await register(api(), workflow([makes, node('after')], line('make', 'after'))),
    );
    const { artifactId } = events.find(({ type }) => type === 'artifact.created').payload;
    for (let fromSeq = 0; fromSeq <= events.length; fromSeq++) {
      const id = await forked(runId, { mode: 'branch', fromSeq });
      await api().ended(id);
      const artifact = await api().get(`/v1/runs/${id}/artifacts/${artifactId}`);
      expect(artifact.body.data, `from ${fromSeq}`).toEqual({ text: 'report' });
      expect((await api().events(id)).filter(({ type }) => type === 'artifact.created')).toHaveLength(1);
    }
  });

  it('happen once for one idempotency key', async () => {
    const { runId } = await ended('conformance-noop');
    const key = { 'idempotency-key': unique('fork') };
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => forkOf(api(), runId, { mode: 'branch', fromSeq: 0 }, key)),
    );
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
  });

  // They count the runs of the host.
  describe('are refused, and nothing is made,', { concurrent: false }, () => {
    const count = async (): Promise<number> =>
      (await api().get('/v1/host/capstan/runs?limit=200&workflowId=conformance-noop')).body.items.length;

    it.each<[string, object, number]>([
      ['a negative place', { mode: 'replay', fromSeq: -1 }, 400],
      ['a place between two events', { mode: 'replay', fromSeq: 1.5 }, 400],
      ['a place that is no number', { mode: 'replay', fromSeq: '1' }, 400],
      ['a place beyond the end', { mode: 'replay', fromSeq: 99_999 }, 422],
      ['a place just beyond the end', { mode: 'branch', fromSeq: 5 }, 422],
      ['an unknown mode', { mode: 'rewind', fromSeq: 0 }, 400],
      ['no mode', { fromSeq: 0 }, 400],
      ['a branch from nowhere', { mode: 'branch' }, 400],
      ['a replay that is otherwise', { mode: 'replay', runOptionsOverlay: { tags: ['x'] } }, 400],
      ['an unknown option', { mode: 'branch', fromSeq: 0, runOptionsOverlay: { surprise: 1 } }, 400],
      ['an unknown key', { mode: 'replay', surprise: 1 }, 400],
      ['an overlay that is a list', { mode: 'branch', fromSeq: 0, runOptionsOverlay: [] }, 400],
    ])('for %s', async (_what, body, status) => {
      const { runId } = await ended('conformance-noop');
      const before = await count();
      expectRefusal(await forkOf(api(), runId, body), status, 'validation_error');
      expect(await count()).toBe(before);
    });

    it('for runs of others and runs that are not there', async () => {
      const { runId } = await ended('conformance-noop');
      const before = await count();
      for (const who of ['other', 'workspace', 'test'] as const) {
        expectRefusal(await forkOf(host().as(who), runId, { mode: 'replay' }), 404, 'not_found');
      }
      expectRefusal(await forkOf(api(), 'run-absent', { mode: 'replay' }), 404, 'not_found');
      expectRefusal(await forkOf(host().as('viewer'), runId, { mode: 'replay' }), 403, 'forbidden');
      expect(await count()).toBe(before);
    });

    it('for inputs that the workflow does not take', async () => {
      const definition = workflow([node('a')], [], { variables: [{ name: 'n', type: 'number' }] });
      const { runId } = await ended(await register(api(), definition));
      const runOptionsOverlay = { inputs: { n: 'many' } };
      const answer = await forkOf(api(), runId, { mode: 'branch', fromSeq: 0, runOptionsOverlay });
      expectRefusal(answer, 400, 'validation_error');
    });
  });

  it('say where they part from their source, once, and come to their end all the same', async () => {
    const computes = node('b', 'core.identity', { inputs: { x: expression('1 + 1') } });
    const { runId, events } = await ended(
      await register(api(), workflow([node('a'), computes, node('c')], line('a', 'b', 'c'))),
    );
    const at = events.findIndex(({ type, nodeId }) => type === 'node.completed' && nodeId === 'b');
    const told = `replace(body, '"outputs":{"x":2}', '"outputs":{"x":3}')`;
    await writeStore(host().config, [
      `UPDATE events SET body = ${told} WHERE run_id = '${runId}' AND sequence = ${at}`,
    ]);
    const replayed = await api().ended(await forked(runId, { mode: 'replay' }));
    expect(replayed.status).toBe('completed');
    expect(replayed.nodeStates.b.outputs).toEqual({ x: 2 });
    const log = await api().events(replayed.runId);
    expect(log.filter(({ type }) => type === 'replay.diverged').map(({ payload }) => payload)).toEqual([
      {
        sourceRunId: runId,
        atSequence: at,
        originalEventId: events[at].eventId,
        divergenceKind: 'output',
        divergencePoint: 'node.completed',
      },
    ]);
    const { frames } = await api().frames(`/v1/runs/${replayed.runId}/events?streamMode=debug`);
    expect(frames.map(({ event }) => event)).toContain('replay.diverged');
    const shown = await api().frames(`/v1/runs/${replayed.runId}/events?streamMode=updates`);
    expect(shown.frames.map(({ event }) => event)).not.toContain('replay.diverged');
  });

  it('wait as long for a retry as their source did', async () => {
    const fails = node('x', 'core.fail', { settings: { retry: { maxRetries: 2, delayMs: 40 } } });
    const definition = workflow([fails, node('c')], [edge('x', 'c', { triggerRule: 'any_failed' })]);
    const { runId, events } = await ended(await register(api(), definition));
    const replayed = await forked(runId, { mode: 'replay', fromSeq: 2 });
    await api().ended(replayed);
    expect(shape(await api().events(replayed))).toEqual(shape(events));
    expect(events.filter(({ type }) => type === 'node.retried')).toHaveLength(2);
  });
});
