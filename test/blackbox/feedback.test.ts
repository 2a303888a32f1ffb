import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api, Frame } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { connection, edge, fixed, line, node, register, unique, variable, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startHostWith, startTestHost } from '../support/host.ts';
import { approval, waitingRun } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { spawnHost } from '../support/process.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';

/** learning.md 2: what people and agents think of runs. Its numbers have a test of their own. */

const NOOP = 'conformance-noop';
const ONLY_RUNS = { key: 'only-runs-of-alpha', tenant: 'alpha', principal: 'only-runs', scopes: ['runs:read'] };

const FLAG = { signal: { kind: 'flag' } };
const rating = (value: unknown) => ({ signal: { kind: 'rating', rating: value } });
const correction = (text: string, target?: object) => ({
  signal: { kind: 'correction', correction: text },
  ...(target ? { target } : {}),
});
const label = (text: string) => ({ signal: { kind: 'label', label: text } });

const pathOf = (runId: string): string => `/v1/runs/${runId}/annotations`;
const listOf = async (api: Api, runId: string): Promise<Answer['body'][]> =>
  (await api.get(pathOf(runId))).body.annotations;

async function annotate(api: Api, runId: string, body: object): Promise<Answer['body']> {
  const answer = await api.post(pathOf(runId), body);
  if (answer.status !== 201) throw new Error(`not recorded: ${answer.status} ${answer.text}`);
  return answer.body;
}

async function finished(api: Api, workflowId = NOOP): Promise<string> {
  const runId = await api.run(workflowId);
  await api.ended(runId);
  return runId;
}

onEachStore(
  'annotations',
  (host) => {
    const schemas = loadSchemas();
    const api = (): Api => host().as('editor');
    let runId: string;
    beforeAll(async () => {
      runId = await finished(api());
    });

    it('are advertised at the root, with every target and signal', async () => {
      const { body } = await host().anonymous.get('/.well-known/openwop');
      expect(body.feedback).toEqual({
        supported: true,
        targets: ['run', 'event', 'node'],
        signals: ['rating', 'correction', 'label', 'flag'],
      });
    });

    it.each([
      ['a rating', rating(5)],
      ['the lowest rating', rating(1)],
      ['a correction', correction('It should have said hello.')],
      ['a label', label('off-brand')],
      ['a flag', FLAG],
      ['a note', { ...FLAG, note: 'Somebody should look at this.' }],
      ['odd characters', { ...correction('NUL \0, quote ", lone \ud800, line\nbreak, 🦜'), note: '' }],
      ['more than its kind needs', { signal: { kind: 'flag', rating: 3, label: 'x', correction: 'y' } }],
    ])('take %s, and show it as they took it', async (_what, body) => {
      const before = Date.now();
      const answer = await api().post(pathOf(runId), body);
      expect(answer.status, answer.text).toBe(201);
      expect(schemas.annotation(answer.body)).toEqual([]);
      const { annotationId, createdAt, ...rest } = answer.body;
      expect(annotationId).toMatch(/^ann-[0-9a-z]{22}$/);
      expect(Date.parse(createdAt)).toBeGreaterThanOrEqual(before - 1_000);
      expect(rest).toEqual({ ...body, target: { runId }, actor: { principalRef: 'editor-of-alpha' } });
      expect(await listOf(api(), runId)).toContainEqual(answer.body);
    });

    it('are an empty list for a run that nobody has judged', async () => {
      const answer = await api().get(pathOf(await finished(api())));
      expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: { annotations: [] } });
    });

    it('are listed oldest first, all of them, each under the run they are about', async () => {
      const judged = await finished(api());
      const made: Answer['body'][] = [];
      for (let index = 0; index < 12; index++) made.push(await annotate(api(), judged, label(`number ${index}`)));
      const many = await Promise.all(Array.from({ length: 520 }, () => annotate(api(), judged, FLAG)));
      const listed = await listOf(api(), judged);
      expect(listed.slice(0, 12)).toEqual(made);
      expect(new Set(listed.map(({ annotationId }) => annotationId)).size).toBe(made.length + many.length);
      const order = listed.map(({ createdAt, annotationId }) => `${createdAt} ${annotationId}`);
      expect(order).toEqual(order.toSorted());
      for (const { target } of listed) expect(target.runId).toBe(judged);
    });

    it('say who judged by the credential, whatever the body claims', async () => {
      const { actor } = await annotate(host().as('reviewer'), runId, FLAG);
      expect(actor).toEqual({ principalRef: 'reviewer-of-alpha' });
      const claim = { ...FLAG, actor: { principalRef: 'somebody-else' } };
      expectRefusal(await api().post(pathOf(runId), claim), 400, 'validation_error');
    });

    describe('are refused', () => {
      it.each<[string, unknown, string]>([
        ['nothing', {}, 'signal'],
        ['a list', [], 'body'],
        ['no kind', { signal: {} }, 'signal.kind'],
        ['an unknown kind', { signal: { kind: 'applause' } }, 'signal.kind'],
        ['a rating without a number', { signal: { kind: 'rating' } }, 'signal.rating'],
        ['a rating of 0', rating(0), 'signal.rating'],
        ['a rating of 6', rating(6), 'signal.rating'],
        ['a rating between two', rating(3.5), 'signal.rating'],
        ['a rating as text', rating('5'), 'signal.rating'],
        ['a rating of null', rating(null), 'signal.rating'],
        ['a stray rating that is none', { signal: { kind: 'flag', rating: 9 } }, 'signal.rating'],
        ['a label without text', { signal: { kind: 'label' } }, 'signal.label'],
        ['a label that is a number', { signal: { kind: 'label', label: 7 } }, 'signal.label'],
        ['a correction without text', { signal: { kind: 'correction' } }, 'signal.correction'],
        ['a correction that is an object', { signal: { kind: 'correction', correction: {} } }, 'signal.correction'],
        ['a note that is too long', { ...FLAG, note: 'x'.repeat(65_537) }, 'note'],
        ['a note that is a number', { ...FLAG, note: 1 }, 'note'],
        ['an unknown member', { ...FLAG, severity: 'high' }, 'severity'],
        ['an unknown member of the signal', { signal: { kind: 'flag', weight: 2 } }, 'signal.weight'],
        ['an unknown member of the target', { ...FLAG, target: { edgeId: 'e' } }, 'target.edgeId'],
        ['the run in the body', { ...FLAG, target: { runId: 'run-x' } }, 'target.runId'],
        ['an id of its own', { ...FLAG, annotationId: 'ann-1' }, 'annotationId'],
        ['an unknown event', { ...FLAG, target: { eventId: 'evt-unknown' } }, 'target.eventId'],
        ['an empty event', { ...FLAG, target: { eventId: '' } }, 'target.eventId'],
        ['an unknown node', { ...FLAG, target: { nodeId: 'unknown' } }, 'target.nodeId'],
        ['a node of a prototype', { ...FLAG, target: { nodeId: 'constructor' } }, 'target.nodeId'],
      ])('for %s', async (_what, body, field) => {
        const before = await listOf(api(), runId);
        const answer = await api().post(pathOf(runId), body);
        expectRefusal(answer, 400, 'validation_error');
        expect(answer.body.details.field).toBe(field);
        expect(await listOf(api(), runId)).toEqual(before);
      });

      it('first without a credential, then without the scope, then without the run, then for the body', async () => {
        const nonsense = { signal: 'nonsense' };
        for (const id of [runId, 'run-absent']) {
          expectRefusal(await host().anonymous.post(pathOf(id), nonsense), 401, 'unauthenticated');
          const forbidden = await host().as('viewer').post(pathOf(id), nonsense);
          expectRefusal(forbidden, 403, 'forbidden');
          expect(forbidden.body.details).toEqual({ scopeRequired: 'feedback:write' });
          expectRefusal(await host().as('nothing').get(pathOf(id)), 403, 'forbidden');
        }
        expectRefusal(await api().post(pathOf('run-absent'), nonsense), 404, 'not_found');
        expectRefusal(await api().post(pathOf(runId), nonsense), 400, 'validation_error');
      });

      it('to other tenants and other workspaces, which cannot tell the run from one that is not there', async () => {
        const inNorth = await finished(host().as('workspace'));
        await annotate(host().as('workspace'), inNorth, label('of the north'));
        const strangers: [Api, string][] = [
          [host().as('other'), runId],
          [host().as('other'), inNorth],
          [host().as('workspace'), runId],
        ];
        for (const [stranger, id] of strangers) {
          for (const body of [FLAG, { signal: 'nonsense' }]) {
            const answer = await stranger.post(pathOf(id), body);
            expectRefusal(answer, 404, 'not_found');
            expect(answer.body).toEqual((await stranger.post(pathOf('run-absent'), body)).body);
          }
          expectRefusal(await stranger.get(pathOf(id)), 404, 'not_found');
        }
        expect(await listOf(host().as('workspace'), inNorth)).toHaveLength(1);
        expect(await listOf(api(), inNorth)).toHaveLength(1);
      });

      it('in any other way than to record and to list: nothing is changed or taken back', async () => {
        const { annotationId } = await annotate(api(), runId, FLAG);
        for (const method of ['PUT', 'PATCH', 'DELETE']) {
          expect((await api().request(method, pathOf(runId), {})).status).toBe(405);
          expect((await api().request(method, `${pathOf(runId)}/${annotationId}`, {})).status).toBe(404);
        }
      });
    });

    it('may be about one event, one node, or both', async () => {
      const id = await register(
        api(),
        workflow(
          [node('a'), node('b'), node('never')],
          [edge('a', 'b'), edge('a', 'never', { condition: { type: 'truthy', left: 'absent' } })],
        ),
      );
      const judged = await finished(api(), id);
      const [event] = await api().events(judged);
      const targets = [
        { eventId: event.eventId },
        { nodeId: 'b' },
        { nodeId: 'never' },
        { eventId: event.eventId, nodeId: 'a' },
        {},
      ];
      for (const target of targets) {
        const annotation = await annotate(api(), judged, { ...FLAG, target });
        expect(annotation.target).toEqual({ runId: judged, ...target });
        expect(schemas.annotation(annotation)).toEqual([]);
      }
      const other = await finished(api(), id);
      const foreign = { ...FLAG, target: { eventId: event.eventId } };
      expectRefusal(await api().post(pathOf(other), foreign), 400, 'validation_error');
      const beyond = `${event.eventId.slice(0, -6)}zzzzzz`;
      expectRefusal(
        await api().post(pathOf(judged), { ...FLAG, target: { eventId: beyond } }),
        400,
        'validation_error',
      );
    });

    it('leave the log of a finished run as it is, in every form in which it is read', async () => {
      const judged = await finished(api());
      const read = async () => ({
        events: await api().events(judged),
        poll: (await api().get(`/v1/runs/${judged}/events/poll`)).body,
        stream: (await api().frames(`/v1/runs/${judged}/events?streamMode=debug`)).frames,
        snapshot: (await api().get(`/v1/runs/${judged}`)).body,
      });
      const before = await read();
      await annotate(api(), judged, { ...FLAG, note: 'after the fact' });
      expect(await read()).toEqual(before);
    });

    it('stay with their run: forks of it begin with none', async () => {
      const judged = await finished(api());
      await annotate(api(), judged, FLAG);
      for (const mode of ['branch', 'replay']) {
        const fork = await api().post(`/v1/runs/${judged}:fork`, { fromSeq: 0, mode });
        expect(fork.status, fork.text).toBe(201);
        await api().ended(fork.body.runId);
        const listed = await api().get(pathOf(fork.body.runId));
        expect({ status: listed.status, body: listed.body }).toEqual({ status: 200, body: { annotations: [] } });
      }
      expect(await listOf(api(), judged)).toHaveLength(1);
    });

    it('travel in the debug bundle, to those who may read them', async () => {
      const judged = await finished(api());
      const made = await annotate(api(), judged, { ...FLAG, note: 'look' });
      const bundle = await api().get(`/v1/runs/${judged}/debug-bundle`);
      expect(bundle.body.annotations).toEqual([made]);
      const { key } = ONLY_RUNS;
      const without = await fetch(`${host().url}/v1/runs/${judged}/debug-bundle`, {
        headers: { authorization: `Bearer ${key}` },
      });
      expect(without.status).toBe(200);
      expect(await without.text()).not.toContain(made.annotationId);
    });

    it('are gone with their run when it is not kept any more', async () => {
      const judged = await finished(api());
      await annotate(api(), judged, { ...FLAG, note: 'gone soon' });
      const expired = await api().post(`/v1/host/sample/test/force-expire/${judged}`);
      expect(expired.status, expired.text).toBeLessThan(300);
      expectRefusal(await api().get(pathOf(judged)), 410, 'run_expired');
      expectRefusal(await api().post(pathOf(judged), FLAG), 410, 'run_expired');
      const inbox = await api().get('/v1/host/capstan/inbox?limit=200');
      expect(inbox.text).not.toContain(judged);
    });

    it('are recorded once for one idempotency key', async () => {
      const judged = await finished(api());
      const key = { 'idempotency-key': unique('key') };
      const [first, second] = await Promise.all([1, 2].map(() => api().post(pathOf(judged), rating(4), key)));
      const third = await api().post(pathOf(judged), rating(4), key);
      const answered = [first!, second!, third].filter(({ status }) => status === 201);
      expect(answered.length).toBeGreaterThanOrEqual(2);
      expect(new Set(answered.map(({ body }) => body.annotationId)).size).toBe(1);
      expect(await listOf(api(), judged)).toHaveLength(1);
    });

    it('are in the audit log, under the principal who judged', async () => {
      const judged = await finished(api());
      const { annotationId } = await annotate(host().as('reviewer'), judged, { ...FLAG, note: 'not in the audit log' });
      const answer = await host().as('owner').get('/v1/host/capstan/audit?action=run.annotate&limit=200');
      const entries = answer.body.items.filter(({ target }: { target: string }) => target === judged);
      expect(entries).toMatchObject([
        { actor: 'reviewer-of-alpha', outcome: 'success', details: { annotationId, kind: 'flag' } },
      ]);
      expect(answer.text).not.toContain('not in the audit log');
    });

    it('replace a rating by a later one of the same person on the same target, and say so', async () => {
      const judged = await finished(api());
      const mine = [await annotate(api(), judged, rating(1)), await annotate(api(), judged, rating(4))];
      const onNode = await annotate(api(), judged, { ...rating(2), target: { nodeId: 'noop' } });
      const theirs = await annotate(host().as('reviewer'), judged, rating(2));
      const { body } = await api().get(pathOf(judged));
      expect(body.annotations).toEqual([...mine, onNode, theirs]);
      expect(body.superseded).toEqual([mine[0].annotationId]);
    });

    it('let runs be found by whether somebody flagged them', async () => {
      const id = await register(api(), workflow([node('a')]));
      const runs = await Promise.all([1, 2, 3, 4].map(() => finished(api(), id)));
      for (const runId of runs.slice(0, 2)) await annotate(api(), runId, FLAG);
      await annotate(api(), runs[2]!, rating(1));
      const found = async (query: string, by = api()) => {
        const { body } = await by.get(`/v1/host/capstan/runs?workflowId=${id}${query}`);
        return body.items.map(({ runId }: { runId: string }) => runId).sort();
      };
      expect(await found('&flagged=true')).toEqual(runs.slice(0, 2).sort());
      expect(await found('&flagged=false')).toEqual(runs.slice(2).sort());
      expect(await found('&flagged=true', host().as('other'))).toEqual([]);
      const first = await api().get(`/v1/host/capstan/runs?workflowId=${id}&flagged=true&limit=1`);
      expect(await found(`&flagged=true&cursor=${first.body.nextCursor}`)).toHaveLength(1);
      expectRefusal(await api().get('/v1/host/capstan/runs?flagged=maybe'), 400, 'validation_error');
    });

    it('bring a run to the inbox that was flagged, rated low or corrected, once, until it was reviewed', async () => {
      const inbox = async (by = api()) =>
        (await by.get('/v1/host/capstan/inbox?limit=200')).body.items.filter(
          ({ kind }: { kind: string }) => kind === 'feedback',
        );
      const ofRun = async (id: string, by = api()) =>
        (await inbox(by)).filter((item: { runId: string }) => item.runId === id);
      const judged = await finished(api());
      await annotate(api(), judged, rating(3));
      await annotate(api(), judged, label('fine'));
      expect(await ofRun(judged)).toEqual([]);
      await annotate(api(), judged, FLAG);
      const { annotationId } = await annotate(api(), judged, correction('x', { nodeId: 'noop' }));
      const [item, ...rest] = await ofRun(judged);
      expect(rest).toEqual([]);
      expect(item).toEqual({
        kind: 'feedback',
        id: annotationId,
        title: `Corrected: ${NOOP}`,
        createdAt: expect.any(String),
        ageMs: expect.any(Number),
        link: `/console/runs/${judged}`,
        runId: judged,
        workflowId: NOOP,
        startedBy: 'editor-of-alpha',
        nodeId: 'noop',
        requiredScope: 'feedback:write',
      });
      expect(await ofRun(judged, host().as('other'))).toEqual([]);
      expect(await ofRun(judged, host().as('workspace'))).toEqual([]);
      await annotate(host().as('reviewer'), judged, label('reviewed'));
      expect(await ofRun(judged)).toEqual([]);

      await annotate(api(), judged, rating(2));
      expect(await ofRun(judged)).toMatchObject([{ title: `Rated 2: ${NOOP}` }]);
      await annotate(api(), judged, rating(5));
      expect(await ofRun(judged)).toEqual([]);
    });
  },
  { apiKeys: keyRecords([ONLY_RUNS]) },
);

onEachStore(
  'annotations on a run that is being followed',
  (host) => {
    const schemas = loadSchemas();
    const api = (): Api => host().as('editor');
    const open = (runId: string, query: string, key: string = KEYS.viewer.key): Promise<Stream> =>
      Stream.open(`${host().url}/v1/runs/${runId}/events${query}`, key);
    const isAnnotated = ({ event }: Frame): boolean => event === 'run.annotated';
    const began = (frames: readonly Frame[]): boolean => frames.some(({ event }) => event === 'interrupt.requested');

    it('reach every open stream of updates and debug, bare, once and without an id', async () => {
      const { runId } = await waitingRun(api(), await register(api(), workflow([approval('ask')])));
      const queries = [
        '',
        '?streamMode=updates',
        '?streamMode=debug',
        '?streamMode=updates,messages',
        '?bufferMs=5000',
      ];
      const streams = await Promise.all(Array.from({ length: 100 }, (_, index) => open(runId, queries[index % 5]!)));
      for (const stream of streams.filter((_, index) => index % 5 !== 4)) await stream.until(began);
      const made = await annotate(host().as('reviewer'), runId, { ...rating(2), target: { nodeId: 'ask' } });
      for (const stream of streams) await stream.until((frames) => frames.some(isAnnotated));
      await api().post(`/v1/runs/${runId}/cancel`);
      for (const stream of streams) {
        await stream.ended();
        const [notice, ...more] = stream.frames.filter(isAnnotated);
        expect(more).toEqual([]);
        expect(Object.keys(notice!).sort()).toEqual(['data', 'event']);
        expect(JSON.parse(notice!.data!)).toEqual(made);
      }
      expect(schemas.annotation(made)).toEqual([]);
      const { frames } = await api().frames(`/v1/runs/${runId}/events?streamMode=debug`);
      expect(frames.some(isAnnotated)).toBe(false);
      expect((await api().events(runId)).some(({ type }) => type === 'run.annotated')).toBe(false);
      expect((await api().get(`/v1/runs/${runId}/events/poll`)).text).not.toContain(made.annotationId);
    });

    it('reach no other streams, no polls, and nobody who may not read them', async () => {
      const { runId } = await waitingRun(api(), await register(api(), workflow([approval('ask')])));
      const quiet = await Promise.all([
        open(runId, '?streamMode=values'),
        open(runId, '?streamMode=messages'),
        open(runId, '', ONLY_RUNS.key),
      ]);
      const watching = await open(runId, '');
      await watching.until(began);
      const poll = api().get(`/v1/runs/${runId}/events/poll?lastSequence=9&timeout=1`);
      const { annotationId } = await annotate(api(), runId, FLAG);
      await watching.until((frames) => frames.some(isAnnotated));
      await api().post(`/v1/runs/${runId}/cancel`);
      for (const stream of quiet) {
        await stream.ended();
        expect(JSON.stringify(stream.frames)).not.toContain(annotationId);
      }
      await watching.ended();
      expect((await poll).text).not.toContain(annotationId);
    });
  },
  { apiKeys: keyRecords([ONLY_RUNS]) },
);

it('annotations that are recorded on one host reach those who follow the run on another', async () => {
  const first = await startTestHost('postgres', inject('postgresUrl'));
  const second = await first.another();
  const { runId } = await waitingRun(
    first.as('editor'),
    await register(first.as('editor'), workflow([approval('ask')])),
  );
  const stream = await Stream.open(`${second.url}/v1/runs/${runId}/events`, KEYS.viewer.key);
  await stream.until((frames) => frames.some(({ event }) => event === 'interrupt.requested'));
  const made = await annotate(first.as('editor'), runId, rating(4));
  await stream.until((frames) => frames.some(({ event }) => event === 'run.annotated'));
  expect(stream.frames.at(-1)).toEqual({ event: 'run.annotated', data: JSON.stringify(made) });
  stream.drop();
  await second.stop();
  await first.stop();
});

it('annotations survive a host that is killed right after it has taken them', async () => {
  const folder = freshFolder();
  const host = await spawnHost({ CAPSTAN_DATA: folder.path });
  const runId = await finished(host.as('editor'));
  const made = await Promise.all([1, 2, 3].map((value) => annotate(host.as('editor'), runId, rating(value))));
  host.signal('SIGKILL');
  await host.exit;
  const again = await startHostWith({ CAPSTAN_DATA: folder.path });
  const listed = await listOf(again.as('editor'), runId);
  await again.stop();
  folder.remove();
  expect(new Set(listed.map(({ annotationId }) => annotationId))).toEqual(
    new Set(made.map(({ annotationId }) => annotationId)),
  );
});

onEachStore('agents that judge', (host) => {
  const api = (): Api => host().as('editor');
  const AGENT = { agentId: 'core.agents.judge' };
  const judge = (config: object, more: object = {}) =>
    node('judge', 'core.feedback.annotate', { config: config as never, ...more });
  const judgedBy = async (...given: Parameters<typeof judge>): Promise<{ runId: string; snapshot: Answer['body'] }> => {
    const runId = await api().run(
      await register(api(), workflow([node('write'), judge(...given)], line('write', 'judge'))),
    );
    return { runId, snapshot: await api().ended(runId) };
  };

  it('annotate their own run, as the agent that they stand for', async () => {
    const config = { kind: 'rating', rating: 2, nodeId: 'write', note: 'could be shorter' };
    const { runId, snapshot } = await judgedBy(config, { agent: AGENT });
    const [annotation, ...rest] = await listOf(api(), runId);
    expect(rest).toEqual([]);
    expect(loadSchemas().annotation(annotation)).toEqual([]);
    expect(annotation).toMatchObject({
      target: { runId, nodeId: 'write' },
      signal: { kind: 'rating', rating: 2 },
      actor: { principalRef: AGENT.agentId },
      note: 'could be shorter',
    });
    expect(snapshot.nodeStates.judge.outputs).toEqual({ annotationId: annotation.annotationId });
  });

  it('are named after their node where they stand for no agent', async () => {
    const { runId, snapshot } = await judgedBy({ kind: 'flag' });
    const [{ actor }] = await listOf(api(), runId);
    expect(actor).toEqual({ principalRef: `${snapshot.workflowId}/judge` });
  });

  it('judge other runs, and take what they say from what other nodes give', async () => {
    const runId = await finished(api());
    const definition = workflow(
      [
        node('think', 'core.identity', { inputs: { text: fixed('Say hello first.') } }),
        judge(
          { kind: 'correction' },
          { inputs: { correction: connection('think', 'text'), runId: variable('judged') } },
        ),
      ],
      line('think', 'judge'),
      { variables: [{ name: 'judged', type: 'string' }] } as never,
    );
    await api().ended(await api().run(await register(api(), definition), { inputs: { judged: runId } }));
    expect(await listOf(api(), runId)).toMatchObject([
      { target: { runId }, signal: { kind: 'correction', correction: 'Say hello first.' } },
    ]);
  });

  it.each([
    ['a node that is not there', { kind: 'flag', nodeId: 'absent' }, 'validation_error'],
    ['a run that is not there', { kind: 'flag', runId: 'run-absent' }, 'not_found'],
    ['nothing in particular', { rating: 3 }, 'validation_error'],
    ['a rating without a number', { kind: 'rating' }, 'validation_error'],
  ])('fail for %s', async (_what, config, code) => {
    const { runId, snapshot } = await judgedBy(config);
    expect(snapshot).toMatchObject({ status: 'failed', error: { code } });
    expect(await listOf(api(), runId)).toEqual([]);
  });

  it('cannot judge the runs of another tenant, nor from a workspace those of the rest', async () => {
    const runId = await finished(api());
    for (const who of ['other', 'workspace'] as const) {
      const stranger = host().as(who);
      const id = await register(stranger, workflow([judge({ kind: 'flag', runId })]));
      expect((await stranger.ended(await stranger.run(id))).error.code).toBe('not_found');
    }
    expect(await listOf(api(), runId)).toEqual([]);
  });

  it('do not replace what a person said, whatever they call themselves', async () => {
    const { runId } = await judgedBy({ kind: 'rating', rating: 5 }, { agent: { agentId: 'editor-of-alpha' } });
    await annotate(api(), runId, rating(1));
    expect((await api().get(pathOf(runId))).body.superseded).toBeUndefined();
  });

  it('give away nothing that the definition keeps from readers', async () => {
    const word = unique('hush');
    const definition = workflow(
      [
        node('keep', 'core.identity', { inputs: { text: fixed(word) }, outputSensitivity: { text: true } }),
        judge({ kind: 'label', label: 'x' }, { inputs: { note: connection('keep', 'text') } }),
      ],
      line('keep', 'judge'),
    );
    const runId = await api().run(await register(api(), definition));
    await api().ended(runId);
    expect(await listOf(api(), runId)).toMatchObject([{ signal: { label: 'x' }, note: '[REDACTED]' }]);
  });

  it('judge once, however often their run is replayed', async () => {
    const { runId } = await judgedBy({ kind: 'flag' });
    const fork = await api().post(`/v1/runs/${runId}:fork`, { fromSeq: 0, mode: 'replay' });
    expect((await api().ended(fork.body.runId)).status).toBe('completed');
    expect(await listOf(api(), runId)).toHaveLength(1);
    expect(await listOf(api(), fork.body.runId)).toEqual([]);
  });

  it('are refused a config that means nothing', async () => {
    const answer = await api().post('/v1/host/capstan/workflows', workflow([judge({ kind: 'applause' })]));
    expectRefusal(answer, 422, 'validation_error');
  });
});

onEachStore(
  'feedback that is switched off',
  (host) => {
    const operations: ((api: Api, runId: string) => Promise<Answer>)[] = [
      (api, runId) => api.post(pathOf(runId), FLAG),
      (api, runId) => api.post(pathOf(runId), { nonsense: true }),
      (api, runId) => api.get(pathOf(runId)),
    ];

    it('is refused with 501, whatever is asked about, to everybody who has a credential', async () => {
      const runId = await finished(host().as('editor'));
      for (const ask of operations) {
        for (const id of [runId, 'probe-run-rfc0056']) {
          expectRefusal(await ask(host().anonymous, id), 401, 'unauthenticated');
          for (const who of ['editor', 'viewer', 'nothing', 'other'] as const) {
            expectRefusal(await ask(host().as(who), id), 501, 'capability_not_provided');
          }
        }
      }
    });

    it('is not advertised, and nothing of it is there', async () => {
      const { body } = await host().anonymous.get('/.well-known/openwop');
      expect(body).not.toHaveProperty('feedback');
      expectRefusal(await host().as('owner').get('/v1/host/capstan/feedback/summary'), 404, 'not_found');
      const definition = workflow([node('judge', 'core.feedback.annotate', { config: { kind: 'flag' } })]);
      expect((await host().as('editor').post('/v1/host/capstan/workflows', definition)).status).toBe(422);
    });

    it('leaves everything else as it is', async () => {
      const api = host().as('editor');
      const { runId } = await waitingRun(api, await register(api, workflow([approval('ask')])));
      const { items } = (await api.get('/v1/host/capstan/inbox')).body;
      expect(items).toMatchObject([{ kind: 'interrupt', runId }]);
      expect((await api.get(`/v1/runs/${runId}/debug-bundle`)).body).not.toHaveProperty('annotations');
      expect((await api.get('/v1/host/capstan/runs?flagged=true')).body.items).toEqual([]);
      expect((await api.get('/v1/host/capstan/runs?flagged=false')).body.items.length).toBeGreaterThan(0);
    });
  },
  { feedback: false },
);
