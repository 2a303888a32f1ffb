import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { copiesOf, freshFolder, readStore, writeStore } from '../support/database.ts';
import { node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startHostWith, startTestHost, type TestHost } from '../support/host.ts';
import { type HostProcess, spawnHost } from '../support/process.ts';
import { onEachStore, onStoresAtOnce, STORES } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Schedules over the wire: what may be written, that each slot gets one run whoever dies, and who sees what. */

type Body = Answer['body'];

const SCHEDULES = '/v1/host/capstan/schedules';
const HOUR_MS = 60 * 60_000;
const EVERY_SECOND = '* * * * * *';
const YEARLY = '0 0 1 1 *';

const plain = workflow([node('a')]);
const choosy = workflow([node('a')], [], {
  variables: [
    { name: 'region', type: 'string', required: true },
    { name: 'password', type: 'string', sensitive: true },
  ],
});

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function create(api: Api, body: object): Promise<Body> {
  const answer = await api.post(SCHEDULES, { workflowId: plain.id, ...body });
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

/** Makes a schedule, to be taken away after the test. */
async function schedule(api: Api, body: object): Promise<Body> {
  const made = await create(api, body);
  cleanUps.push(() => remove(api, made.id));
  return made;
}

const read = async (api: Api, id: string): Promise<Body> => (await api.get(`${SCHEDULES}/${id}`)).body;
const replace = (api: Api, id: string, body: object): Promise<Answer> =>
  api.request('PUT', `${SCHEDULES}/${id}`, { workflowId: plain.id, ...body });
const remove = (api: Api, id: string): Promise<Answer> => api.request('DELETE', `${SCHEDULES}/${id}`);
const runsOf = async (api: Api, id: string): Promise<Body[]> =>
  (await api.get(`/v1/host/capstan/runs?limit=200&tag=schedule:${id}`)).body.items;

const soon = (): string => new Date(Date.now() + 200).toISOString();
const later = (ms: number): string => new Date(Date.now() + ms).toISOString();

/** The slots that runs were started for, as each run says. */
async function slotsOf(api: Api, runs: readonly Body[]): Promise<string[]> {
  const snapshots = await Promise.all(runs.map(({ runId }) => api.get(`/v1/runs/${runId}`)));
  return snapshots.map(({ body }) => body.metadata.scheduledFor);
}

onEachStore('a schedule', (host) => {
  const api = (): Api => host().as('editor');
  beforeAll(async () => {
    await register(api(), plain);
    await register(api(), choosy);
  });

  describe('is written down', () => {
    it('with an id, its next time and whose runs it starts', async () => {
      const made = await schedule(api(), { cron: '30 2 * * *', timezone: 'Europe/Berlin', inputs: { a: 1 } });
      expect(made).toEqual({
        id: expect.stringMatching(/^sch-[0-9a-z]{16,}$/),
        workflowId: plain.id,
        inputs: { a: 1 },
        cron: '30 2 * * *',
        timezone: 'Europe/Berlin',
        missed: 'skip',
        enabled: true,
        nextRunAt: expect.any(String),
        owner: { tenant: 'alpha', principal: 'editor-of-alpha' },
        createdAt: expect.any(String),
        updatedAt: made.createdAt,
      });
      const ahead = Date.parse(made.nextRunAt) - Date.now();
      expect(ahead).toBeGreaterThan(0);
      expect(ahead).toBeLessThanOrEqual(25 * HOUR_MS);
      const inBerlin = new Date(made.nextRunAt).toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' });
      expect(inBerlin).toBe('02:30:00');
      expect(await read(api(), made.id)).toEqual(made);
    });

    it('once for each idempotency key', async () => {
      const body = { workflowId: plain.id, cron: YEARLY };
      const headers = { 'idempotency-key': unique('key') };
      const [first, second] = [await api().post(SCHEDULES, body, headers), await api().post(SCHEDULES, body, headers)];
      cleanUps.push(() => remove(api(), first.body.id));
      expect(first.status).toBe(201);
      expect(second.body).toEqual(first.body);
    });

    it('and listed, newest first, page by page and by workflow', async () => {
      const ids: string[] = [];
      for (let count = 0; count < 3; count++) ids.unshift((await schedule(api(), { cron: YEARLY })).id);
      const other = await schedule(api(), { workflowId: choosy.id, cron: YEARLY, inputs: { region: 'eu' } });
      const first = (await api().get(`${SCHEDULES}?workflowId=${plain.id}&limit=2`)).body;
      const second = (await api().get(`${SCHEDULES}?workflowId=${plain.id}&limit=2&cursor=${first.nextCursor}`)).body;
      expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(ids);
      expect(second.nextCursor).toBeUndefined();
      const all = (await api().get(SCHEDULES)).body.items;
      expect(all[0]).toEqual(other);
      for (const { nextRunAt } of all) expect(nextRunAt).toEqual(expect.any(String));
    });

    it.each<[string, string, object]>([
      ['no time at all', 'cron', {}],
      ['two kinds of time', 'cron', { cron: YEARLY, runAt: later(HOUR_MS) }],
      ['a pattern that is none', 'cron', { cron: '99 * * * *' }],
      ['a pattern of too few fields', 'cron', { cron: '* *' }],
      ['a date that never comes', 'cron', { cron: '0 0 31 2 *' }],
      ['a zone that is none', 'timezone', { cron: YEARLY, timezone: 'Mars/Olympus' }],
      ['a time that has passed', 'runAt', { runAt: later(-HOUR_MS) }],
      ['a time that is none', 'runAt', { runAt: 'tomorrow' }],
      ['a policy that is none', 'missed', { cron: YEARLY, missed: 'all' }],
      ['a workflow that is none', 'workflowId', { cron: YEARLY, workflowId: 'absent' }],
      ['an input that is missing', 'inputs.region', { cron: YEARLY, workflowId: choosy.id }],
      ['an input of the wrong type', 'inputs.region', { cron: YEARLY, workflowId: choosy.id, inputs: { region: 7 } }],
      ['an owner of its own choosing', 'owner', { cron: YEARLY, owner: { principal: 'somebody-else' } }],
    ])('but not with %s', async (_what, field, body) => {
      const answer = await api().post(SCHEDULES, { workflowId: plain.id, ...body });
      expectRefusal(answer, 400, 'validation_error');
      expect(JSON.stringify(answer.body)).toContain(field);
    });

    it('not further ahead than the host says it looks', async () => {
      const { body } = await host().anonymous.get('/.well-known/openwop');
      expect(body.scheduling).toEqual({
        supported: true,
        cron: true,
        delayed: true,
        maxFutureHorizon: expect.stringMatching(/^P\d+D$/),
      });
      const horizonMs = Number(/\d+/.exec(body.scheduling.maxFutureHorizon)![0]) * 24 * HOUR_MS;
      const beyond = await api().post(SCHEDULES, { workflowId: plain.id, runAt: later(horizonMs + HOUR_MS) });
      expectRefusal(beyond, 400, 'schedule_horizon_exceeded');
      const within = await schedule(api(), { runAt: later(horizonMs - HOUR_MS) });
      expect(within.nextRunAt).toBe(within.runAt);
    });
  });

  describe('that is due', () => {
    it('starts one run, in the name of who made it, with its inputs', async () => {
      const made = await schedule(api(), { runAt: soon(), workflowId: choosy.id, inputs: { region: 'eu' } });
      const after = await until(
        () => read(api(), made.id),
        ({ lastRunId }) => lastRunId !== undefined,
      );
      expect(after).toMatchObject({ enabled: false, lastRunAt: expect.any(String) });
      expect(after).not.toHaveProperty('nextRunAt');
      expect(after).not.toHaveProperty('lastError');
      const run = await api().ended(after.lastRunId);
      expect(run).toMatchObject({
        status: 'completed',
        workflowId: choosy.id,
        inputs: { region: 'eu' },
        owner: made.owner,
        metadata: { scheduleId: made.id, scheduledFor: made.runAt },
      });
      expect((await runsOf(api(), made.id)).map(({ runId }) => runId)).toEqual([after.lastRunId]);
      const again = { workflowId: choosy.id, inputs: { region: 'eu' }, runAt: made.runAt, enabled: true };
      expectRefusal(await replace(api(), made.id, again), 400, 'validation_error');
    });
  });

  it('lets a suite see that a slot gets one run and missed ones no backlog', async () => {
    const tick = (body: object): Promise<Answer> => api().post('/v1/host/sample/scheduling/tick', body);
    expect(await tick({ scenario: 'single-tick' })).toMatchObject({ status: 200, body: { runsFired: 1 } });
    const missed = await tick({ scenario: 'missed-window', missedTicks: 5 });
    expect(missed.body.runsFired).toBeLessThanOrEqual(1);
  });

  describe('is changed', () => {
    it('by switching it off and on', async () => {
      const made = await schedule(api(), { cron: YEARLY });
      const off = await replace(api(), made.id, { cron: YEARLY, enabled: false });
      expect(off).toMatchObject({ status: 200, body: { id: made.id, enabled: false } });
      expect(off.body).not.toHaveProperty('nextRunAt');
      const renamed = await replace(api(), made.id, { cron: '0 0 2 1 *' });
      expect(renamed.body, 'it stays off unless somebody switches it on').toMatchObject({ enabled: false });
      const on = await replace(api(), made.id, { cron: YEARLY, enabled: true });
      expect(on.body).toMatchObject({ enabled: true, nextRunAt: made.nextRunAt, createdAt: made.createdAt });
    });

    it('and goes by its new time at once', async () => {
      const made = await schedule(api(), { cron: YEARLY });
      expect((await replace(api(), made.id, { runAt: soon() })).status).toBe(200);
      const after = await until(
        () => read(api(), made.id),
        ({ lastRunId }) => lastRunId !== undefined,
      );
      expect(after).not.toHaveProperty('cron');
    });

    it('and then acts for who changed it', async () => {
      const made = await schedule(api(), { cron: YEARLY });
      const changed = await replace(host().as('owner'), made.id, { cron: YEARLY, inputs: { a: 2 } });
      expect(changed.body.owner.principal).toBe('owner-of-alpha');
    });

    it('only by what could be written down', async () => {
      const made = await schedule(api(), { cron: YEARLY });
      expectRefusal(await replace(api(), made.id, { cron: 'never' }), 400, 'validation_error');
      expectRefusal(await replace(api(), 'sch-absent', { cron: YEARLY }), 404, 'not_found');
      expect(await read(api(), made.id)).toEqual(made);
    });

    it('and removed, which stops it', async () => {
      const made = await schedule(api(), { cron: EVERY_SECOND });
      expect((await remove(api(), made.id)).status).toBe(204);
      expectRefusal(await api().get(`${SCHEDULES}/${made.id}`), 404, 'not_found');
      expectRefusal(await remove(api(), made.id), 404, 'not_found');
      const [left] = await readStore<{ count: number }>(
        host().config,
        `SELECT CAST(COUNT(*) AS INTEGER) AS count FROM work WHERE work_id = '${made.id}'`,
      );
      expect(left!.count).toBe(0);
    });

    it('for all to see in the audit log', async () => {
      const made = await schedule(api(), { cron: YEARLY });
      await replace(api(), made.id, { cron: YEARLY, enabled: false });
      await remove(api(), made.id);
      const { items } = (await api().get('/v1/host/capstan/audit?limit=200')).body;
      const trail = items
        .filter(({ target }: Body) => target === made.id)
        .map(({ action, actor }: Body) => [action, actor]);
      expect(trail).toEqual(
        ['schedule.remove', 'schedule.replace', 'schedule.create'].map((action) => [action, 'editor-of-alpha']),
      );
    });
  });

  describe('keeps to itself', () => {
    it('what other tenants and workspaces have no business with', async () => {
      const ours = await schedule(api(), { cron: YEARLY });
      const north = await schedule(host().as('workspace'), { cron: YEARLY });
      expect(north.owner).toEqual({ tenant: 'alpha', workspace: 'north', principal: 'editor-of-alpha-north' });
      for (const [stranger, id] of [
        [host().as('other'), ours.id],
        [host().as('test'), ours.id],
        [host().as('workspace'), ours.id],
        [host().as('other'), north.id],
      ] as const) {
        expectRefusal(await stranger.get(`${SCHEDULES}/${id}`), 404, 'not_found');
        expectRefusal(await replace(stranger, id, { cron: YEARLY }), 404, 'not_found');
        expectRefusal(await remove(stranger, id), 404, 'not_found');
        const listed = (await stranger.get(SCHEDULES)).body.items.map((item: Body) => item.id);
        expect(listed).not.toContain(id);
      }
      expect((await read(api(), north.id)).id).toBe(north.id);
    });

    it('what takes a scope that the key does not have', async () => {
      const made = await schedule(api(), { cron: YEARLY });
      expect((await read(host().as('viewer'), made.id)).id).toBe(made.id);
      for (const answer of [
        await host().as('viewer').post(SCHEDULES, { workflowId: plain.id, cron: YEARLY }),
        await remove(host().as('viewer'), made.id),
      ]) {
        expectRefusal(answer, 403, 'forbidden');
        expect(answer.body.details.scopeRequired).toBe('schedules:write');
      }
      expectRefusal(await host().as('nothing').get(SCHEDULES), 403, 'forbidden');
    });

    it('inputs that are sensitive, also when it is sent back as it was shown', async () => {
      const inputs = { region: 'eu', password: 'correct horse' };
      const made = await schedule(api(), { workflowId: choosy.id, cron: YEARLY, inputs });
      expect(made.inputs).toEqual({ region: 'eu', password: '[REDACTED]' });
      const { workflowId, inputs: shown } = await read(api(), made.id);
      const back = await replace(api(), made.id, { workflowId, inputs: shown, runAt: soon() });
      expect(back.body.inputs).toEqual(made.inputs);
      const { lastRunId } = await until(
        () => read(api(), made.id),
        (now) => now.lastRunId !== undefined,
      );
      const [row] = await readStore<{ facts: string }>(
        host().config,
        `SELECT facts FROM runs WHERE run_id = '${lastRunId}'`,
      );
      expect(JSON.parse(row!.facts).inputs).toEqual(inputs);
    });

    it('secrets that somebody wrote into it: they are nowhere at rest', async () => {
      const secret = `sk-${'ant-api03'}-${unique('x').replace('-', '')}${'A'.repeat(40)}`;
      await schedule(api(), { cron: YEARLY, inputs: { note: secret } });
      expect(await everythingAtRest(host().config.dataFolder, host().config.databaseUrl)).not.toContain(secret);
    });
  });
});

onStoresAtOnce('a schedule that is due', (host) => {
  const api = (): Api => host().as('editor');
  beforeAll(() => register(api(), plain));

  it('again and again starts one run for each slot', async () => {
    // Far enough apart for a busy host: one that is late by a whole slot leaves it out.
    const made = await create(api(), { cron: '*/2 * * * * *' });
    const runs = await until(
      () => runsOf(api(), made.id),
      (items) => items.length >= 2,
    );
    await remove(api(), made.id);
    const slots = (await slotsOf(api(), runs)).map((slot) => Date.parse(slot)).reverse();
    const first = Date.parse(made.nextRunAt);
    expect(slots.slice(0, 2)).toEqual([first, first + 2_000]);
    expect(slots).toEqual([...new Set(slots)].toSorted((a, b) => a - b));
  });

  it('says why there was no run when its workflow is gone, goes on, and forgets it once it is back', async () => {
    const gone = workflow([node('a')]);
    await register(api(), gone);
    const made = await create(api(), { workflowId: gone.id, cron: EVERY_SECOND });
    await api().request('DELETE', `${WORKFLOWS}/${gone.id}`);
    const failed = await until(
      () => read(api(), made.id),
      ({ lastError }) => lastError !== undefined,
    );
    expect(failed).toMatchObject({
      enabled: true,
      nextRunAt: expect.any(String),
      lastError: { code: 'not_found', message: expect.stringContaining(gone.id), at: expect.any(String) },
    });
    await register(api(), gone);
    const recovered = await until(
      () => read(api(), made.id),
      ({ lastError }) => lastError === undefined,
    );
    expect(recovered.lastRunId).toEqual(expect.any(String));
  });

  it('says so too when the workflow no longer takes its inputs', async () => {
    const changing = workflow([node('a')]);
    await register(api(), changing);
    const made = await create(api(), { workflowId: changing.id, cron: EVERY_SECOND });
    const needy = { ...changing, variables: [{ name: 'region', type: 'string', required: true }] };
    await api().request('PUT', `${WORKFLOWS}/${changing.id}`, needy);
    const failed = await until(
      () => read(api(), made.id),
      ({ lastError }) => lastError !== undefined,
    );
    expect(failed.lastError.code).toBe('validation_error');
  });
});

describe.concurrent('a slot', () => {
  it('never gets a second run from the host that comes after a killed one, and those to come get theirs', async ({
    onTestFinished,
  }) => {
    const folder = freshFolder();
    onTestFinished(folder.remove);
    const killed = await spawnHost({ CAPSTAN_DATA: folder.path });
    onTestFinished(() => kill(killed));
    await register(killed.as('editor'), plain);
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) {
      const body = { workflowId: plain.id, cron: EVERY_SECOND };
      ids.push((await killed.as('editor').post(SCHEDULES, body)).body.id);
    }
    await eachRuns(killed.as('editor'), ids, 1);
    await kill(killed);

    const next = await startHostWith({ CAPSTAN_DATA: folder.path });
    onTestFinished(next.stop);
    const api = next.as('editor');
    await eachRuns(api, ids, 2);
    for (const id of ids) {
      await remove(api, id);
      const runs = await runsOf(api, id);
      const slots = await slotsOf(api, runs);
      expect(new Set(slots).size, id).toBe(slots.length);
      const ended = await Promise.all(runs.map(({ runId }) => api.ended(runId)));
      expect(ended.filter(({ status }) => status !== 'completed')).toEqual([]);
    }
  });

  async function kill(host: HostProcess): Promise<void> {
    host.signal('SIGKILL');
    await host.exit;
  }

  /** Waits until each has started so many runs. */
  async function eachRuns(api: Api, ids: readonly string[], count: number): Promise<void> {
    for (const id of ids) {
      await until(
        () => runsOf(api, id),
        (runs) => runs.length >= count,
      );
    }
  }
});

describe.each(STORES)('times that pass while no host is up, on %s', (kind) => {
  it('are made up for by one run, or by none, as the schedule says', async () => {
    const folder = freshFolder();
    cleanUps.push(folder.remove);
    const before = await startTestHost(kind, inject('postgresUrl'), { dataFolder: folder.path });
    await register(before.as('editor'), plain);
    const made = new Map<string, Body>();
    // Every hour, and not soon: a slot that comes while we look is not one that was missed.
    const cron = `${(new Date().getUTCMinutes() + 30) % 60} * * * *`;
    for (const missed of ['skip', 'once']) {
      for (const timing of [{ cron }, { runAt: later(HOUR_MS) }]) {
        const [name] = Object.keys(timing);
        const body = { workflowId: plain.id, missed, ...timing };
        made.set(`${name} ${missed}`, (await before.as('editor').post(SCHEDULES, body)).body);
      }
    }
    await before.stop();
    const past = 10 * HOUR_MS;
    await writeStore(before.config, [
      `UPDATE schedules SET next_run_at = next_run_at - ${past}, run_at = run_at - ${past}`,
      `UPDATE work SET due_at = due_at - ${past} WHERE kind = 'schedule'`,
    ]);

    const after = await before.another();
    cleanUps.push(() => after.stop());
    const api = after.as('editor');
    for (const [name, { id }] of made) {
      const now = await until(
        () => read(api, id),
        ({ lastRunId, lastMissedAt }) => lastRunId !== undefined || lastMissedAt !== undefined,
      );
      const isOnce = name.endsWith('once');
      expect(await runsOf(api, id), name).toHaveLength(isOnce ? 1 : 0);
      expect(now, name).toHaveProperty(isOnce ? 'lastRunId' : 'lastMissedAt');
      if (now.cron) expect(Date.parse(now.nextRunAt), name).toBeGreaterThan(Date.now());
      else expect(now, name).toMatchObject({ enabled: false });
    }
  });
});

describe('many schedules', () => {
  let one: TestHost;
  let two: TestHost;
  beforeAll(async () => {
    one = await startTestHost('postgres', inject('postgresUrl'));
    two = await one.another();
    await register(one.as('editor'), plain);
  });
  afterAll(async () => {
    await two.stop();
    await one.stop();
  });

  const copies = (table: string, id: string, count: number): string => copiesOf(table, id, 'sch-', count);

  it('that are due in the same second start a thousand runs and not one more, on two hosts', async () => {
    const COUNT = 1_000;
    await schedule(one.as('editor'), { runAt: later(HOUR_MS) });
    const due = Date.now() + 500;
    await writeStore(one.config, [
      `UPDATE schedules SET run_at = ${due}, next_run_at = ${due}`,
      copies('schedules', 'schedule_id', COUNT),
      copies('work', 'work_id', COUNT),
      `UPDATE work SET due_at = ${due} WHERE kind = 'schedule'`,
    ]);

    const counted = `SELECT COUNT(*)::int AS runs, COUNT(DISTINCT tag)::int AS schedules FROM run_tags`;
    const [seen] = await until(
      () => readStore<{ runs: number; schedules: number }>(one.config, counted),
      ([now]) => now!.schedules === COUNT,
    );
    expect(seen).toEqual({ runs: COUNT, schedules: COUNT });
    const waiting = await readStore(one.config, `SELECT work_id FROM work WHERE kind = 'schedule'`);
    expect(waiting).toEqual([]);
  });

  it('are enough at some point', async () => {
    await writeStore(one.config, ['DELETE FROM schedules']);
    const made = await schedule(one.as('editor'), { cron: YEARLY, enabled: false });
    await writeStore(one.config, [copies('schedules', 'schedule_id', 10_000)]);
    const body = { workflowId: plain.id, cron: YEARLY };
    expectRefusal(await one.as('editor').post(SCHEDULES, body), 409, 'conflict');
    await remove(one.as('editor'), made.id);
    await schedule(one.as('editor'), body);
  });
});
