import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onStoresAtOnce } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Commitments over the wire: each is kept once, and the log of its run says for what, never what was intended. */

type Body = Answer['body'];

const { payload } = loadSchemas();
const COMMITMENTS = '/v1/host/capstan/commitments';
const HOUR_MS = 60 * 60_000;

const plain = workflow([node('a')]);

async function commitment(api: Api, body: object): Promise<Body> {
  const answer = await api.post(COMMITMENTS, { memoryRef: 'mem://legal', workflowId: plain.id, ...body });
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

const later = (ms: number): string => new Date(Date.now() + ms).toISOString();
const read = async (api: Api, id: string): Promise<Body> => (await api.get(`${COMMITMENTS}/${id}`)).body;
const kept = (api: Api, id: string): Promise<Body> =>
  until(
    () => read(api, id),
    ({ state }) => state === 'fired',
  );
const runsOf = async (api: Api, id: string): Promise<Body[]> =>
  (await api.get(`/v1/host/capstan/runs?limit=200&tag=commitment:${id}`)).body.items;

onStoresAtOnce('a commitment', (host) => {
  const api = (): Api => host().as('editor');
  beforeAll(() => register(api(), plain));

  it('is kept once its time has come, and its run says what it is for', async () => {
    const intention = unique('remind them of the report');
    const made = await commitment(api(), {
      memoryId: 'mem-88',
      intention: `${intention} sk-1234567890abcdef`,
      inputs: { a: 1 },
      at: later(100),
    });
    expect(made).toEqual({
      id: expect.stringMatching(/^cmt-[0-9a-z]{16,}$/),
      memoryRef: 'mem://legal',
      memoryId: 'mem-88',
      intention: expect.stringContaining(intention),
      workflowId: plain.id,
      inputs: { a: 1 },
      at: expect.any(String),
      condition: 'time',
      state: 'armed',
      nextCheckAt: made.at,
      owner: { tenant: 'alpha', principal: 'editor-of-alpha' },
      createdAt: expect.any(String),
    });
    expect(made.intention).not.toContain('sk-1234567890abcdef');
    const { id } = made;
    const { runId, firedAt, nextCheckAt } = await kept(api(), id);
    expect(Date.parse(firedAt)).toBeGreaterThanOrEqual(Date.parse(made.at));
    expect(nextCheckAt).toBeUndefined();
    const { inputs } = await api().ended(runId);
    expect(inputs).toMatchObject({ a: 1, commitment: { id, memoryRef: 'mem://legal', memoryId: 'mem-88' } });
    const events = await api().events(runId);
    expect(events.map(({ type }) => type).slice(0, 2)).toEqual(['run.started', 'commitment.fired']);
    expect(events[1].payload).toEqual({
      commitmentId: id,
      memoryRef: 'mem://legal',
      memoryId: 'mem-88',
      condition: 'time',
      enqueuedRunId: runId,
    });
    expect(payload('commitment.fired')!(events[1].payload)).toEqual([]);
    expect(JSON.stringify(events)).not.toContain(intention);
    expect(await runsOf(api(), id)).toHaveLength(1);
    const { dataFolder, databaseUrl } = host().config;
    expect(await everythingAtRest(dataFolder, databaseUrl)).not.toContain('sk-1234567890abcdef');
  });

  it('is kept once something has become true', async () => {
    const watched = workflow([node('a')]);
    await register(api(), watched);
    const predicate = { observe: { runs: { workflowId: watched.id } }, when: 'observed.count >= 2', everySec: 1 };
    const { id, condition } = await commitment(api(), { predicate });
    expect(condition).toBe('predicate');
    await api().ended(await api().run(watched.id));
    expect((await read(api(), id)).state).toBe('armed');
    await api().ended(await api().run(watched.id));
    const { runId } = await kept(api(), id);
    const [, fired] = await api().events(runId);
    expect(fired.payload).toMatchObject({ commitmentId: id, condition: 'predicate', enqueuedRunId: runId });
    expect(await runsOf(api(), id)).toHaveLength(1);
  });

  it('is kept again where it says so: so long after, or once it has become true again', async () => {
    const watched = workflow([node('a')]);
    await register(api(), watched);
    const odd = { observe: { runs: { workflowId: watched.id } }, when: 'observed.count % 2 == 1', everySec: 1 };
    const [clock, predicate] = [
      await commitment(api(), { at: later(0), everySec: 1 }),
      await commitment(api(), { predicate: { ...odd, repeats: true } }),
    ];
    const keptSoOften = (id: string, times: number): Promise<Body[]> =>
      until(
        () => runsOf(api(), id),
        (runs) => runs.length >= times,
      );
    await api().ended(await api().run(watched.id));
    await keptSoOften(predicate.id, 1);
    await api().ended(await api().run(watched.id));
    await keptSoOften(clock.id, 2);
    const { nextCheckAt } = await read(api(), predicate.id);
    await until(
      () => read(api(), predicate.id),
      (seen) => seen.nextCheckAt !== nextCheckAt,
    );
    expect(await runsOf(api(), predicate.id)).toHaveLength(1);
    await api().ended(await api().run(watched.id));
    await keptSoOften(predicate.id, 2);
    expect(await read(api(), predicate.id)).toMatchObject({ state: 'armed', nextCheckAt: expect.any(String) });
  });

  it('is not kept while it is paused, and is when it goes on', async () => {
    const at = later(HOUR_MS);
    const { id } = await commitment(api(), { at });
    const paused = (await api().post(`${COMMITMENTS}/${id}:pause`)).body;
    expect([paused.state, paused.nextCheckAt]).toEqual(['off', undefined]);
    expect((await api().post(`${COMMITMENTS}/${id}:resume`)).body).toMatchObject({ state: 'armed', nextCheckAt: at });
    const other = await commitment(api(), { at: later(0) });
    await kept(api(), other.id);
    expectRefusal(await api().post(`${COMMITMENTS}/${other.id}:pause`), 409, 'conflict');
    expect((await host().as('other').post(`${COMMITMENTS}/${id}:pause`)).status).toBe(404);
  });

  it('says why nobody can tell whether it is due', async () => {
    const predicate = { observe: { runs: {} }, when: 'observed.body.ready', everySec: 1 };
    const { id } = await commitment(api(), { predicate });
    const { state } = await until(
      () => read(api(), id),
      ({ lastError }) => lastError !== undefined,
    );
    expect(state).toBe('armed');
  });

  it('is not kept again by a replay of its run, which tells the same', async () => {
    const { id } = await commitment(api(), { at: later(0) });
    const { runId } = await kept(api(), id);
    await api().ended(runId);
    const fork = await api().post(`/v1/runs/${runId}:fork`, { fromSeq: 0, mode: 'replay' });
    expect((await api().ended(fork.body.runId)).status).toBe('completed');
    const types = (events: Body[]): string[] => events.map(({ type }) => type);
    expect(types(await api().events(fork.body.runId))).toEqual(types(await api().events(runId)));
    const { body } = await api().get(COMMITMENTS);
    expect(body.items.filter((each: Body) => each.id === id)).toHaveLength(1);
    expect(await read(api(), id)).toMatchObject({ state: 'fired', runId });
  });

  it.each<[string, string, object]>([
    ['no condition', 'at', {}],
    ['a time that has passed', 'at', { at: later(-HOUR_MS) }],
    ['no memory that it came from', 'memoryRef', { at: later(HOUR_MS), memoryRef: undefined }],
    ['a workflow that is not there', 'workflowId', { at: later(HOUR_MS), workflowId: 'nowhere' }],
    ['no expression', 'when', { predicate: { observe: { runs: {} }, when: 'observed.', everySec: 1 } }],
    [
      'a pause after no time',
      'everySec',
      { everySec: 5, predicate: { observe: { runs: {} }, when: 'true', everySec: 1 } },
    ],
    ['nothing to look at', 'observe', { predicate: { observe: {}, when: 'true', everySec: 1 } }],
  ])('is refused with %s', async (_what, field, body) => {
    const answer = await api().post(COMMITMENTS, { memoryRef: 'mem://legal', workflowId: plain.id, ...body });
    expectRefusal(answer, 400, 'validation_error');
    expect(answer.text).toContain(field);
  });

  it('is listed by its state, seen by its tenant alone, and gone once it is removed', async () => {
    const { id } = await commitment(api(), { at: later(HOUR_MS) });
    const armed = (await api().get(`${COMMITMENTS}?state=armed`)).body.items;
    expect(armed.map((each: Body) => each.id)).toContain(id);
    const fired = (await api().get(`${COMMITMENTS}?state=fired`)).body.items;
    expect(fired.map((each: Body) => each.id)).not.toContain(id);
    expect((await host().as('other').get(`${COMMITMENTS}/${id}`)).status).toBe(404);
    expect((await host().as('workspace').get(`${COMMITMENTS}/${id}`)).status).toBe(404);
    expectRefusal(await host().as('viewer').request('DELETE', `${COMMITMENTS}/${id}`), 403, 'forbidden');
    expect((await api().request('DELETE', `${COMMITMENTS}/${id}`)).status).toBe(204);
    expect((await api().get(`${COMMITMENTS}/${id}`)).status).toBe(404);
  });

  describe('as suites try it', () => {
    it.each(['time', 'predicate'])('is kept once on %s, and says nothing of what was intended', async (condition) => {
      const body = { memoryRef: 'mem://suite', condition, includeIntentionCanary: true };
      const answer = await api().post('/v1/host/sample/commitment/fire', body);
      expect(answer.status, answer.text).toBe(200);
      const { event, fireCount, intentionCanary } = answer.body;
      expect(event).toMatchObject({ commitmentId: expect.any(String), memoryRef: 'mem://suite', condition });
      expect(fireCount).toBe(1);
      expect(intentionCanary).toEqual(expect.any(String));
      expect(JSON.stringify(event)).not.toContain(intentionCanary);
    });

    it('is advertised', async () => {
      const { agents } = (await api().get('/.well-known/openwop')).body;
      expect(agents.commitments).toEqual({ supported: true, fireConditions: ['time', 'predicate'] });
    });
  });
});
