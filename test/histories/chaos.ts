import pg from 'pg';
import type { Answer, Api } from '../support/api.ts';
import { line, node, register, unique, workflow } from '../support/definitions.ts';
import type { HostProcess } from '../support/process.ts';
import { DatabaseProxy } from '../support/proxy.ts';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { type Delivery, type History, type Operation, type ReadEvent, record } from './history.ts';

/** Starts a host with these settings. */
type Start = (environment: Record<string, string>) => Promise<HostProcess>;

interface ChaosOptions {
  readonly databaseUrl: string;
  readonly start: Start;
  /** Decides what happens; a seed makes it the same faults, though not at the same moments of the hosts. */
  readonly chance: () => number;
  readonly forMs: number;
}

/** A host, and the wire to its database that can be cut. */
interface Place {
  readonly proxy: DatabaseProxy;
  readonly offsetMs: number;
  host: HostProcess;
}

/** How far the clock of each host is off. */
const CLOCKS_MS = [0, 60_000, -60_000];
const CLIENTS = 4;
const FREEZE_MS = 1_500;
const CUT_MS = 700;
const SLOT_MS = 1_000;
/** Slots of the calm time after the faults: none of them may be without a run. */
const CALM_SLOTS = 2;
const WANTED = ['run.started', 'run.completed', 'run.failed', 'run.cancelled'];
const SCHEDULES = '/v1/host/capstan/schedules';
const LASTING = workflow(
  [node('a'), node('wait', 'core.delay', { config: { ms: 150 } }), node('b')],
  line('a', 'wait', 'b'),
);
const TICKED = workflow([node('a')]);

/** Three real hosts on one PostgreSQL, clients that ask them, and everything that goes wrong meanwhile. */
export class Chaos {
  readonly #options: ChaosOptions;
  readonly #places: Place[] = [];
  readonly #operations: Operation[] = [];
  readonly #deliveries: Delivery[] = [];
  readonly #runIds: string[] = [];
  readonly faults: Record<string, number> = {};
  #receiver: Receiver | undefined;
  #isOver = false;

  constructor(options: ChaosOptions) {
    this.#options = options;
  }

  /** Lives through it and gives what everybody saw. */
  async history(): Promise<History> {
    for (const offsetMs of CLOCKS_MS) await this.#open(offsetMs);
    const schedule = await this.#prepare();
    const endsAt = Date.now() + this.#options.forMs;
    const everybody = [...Array.from({ length: CLIENTS }, () => this.#client()), this.#trouble(endsAt)];
    await Promise.all(everybody);
    return this.#collect(schedule);
  }

  /** Ends what is left of it. */
  async close(): Promise<void> {
    for (const { host } of this.#places) host.signal('SIGKILL');
    for (const { host, proxy } of this.#places) {
      await host.exit;
      await proxy.cut();
    }
    this.#receiver?.close();
  }

  async #open(offsetMs: number): Promise<void> {
    const proxy = await DatabaseProxy.open(this.#options.databaseUrl);
    this.#places.push({ proxy, offsetMs, host: await this.#startAt({ proxy, offsetMs }) });
  }

  #startAt({ proxy, offsetMs }: Omit<Place, 'host'>): Promise<HostProcess> {
    return this.#options.start({
      DATABASE_URL: proxy.url,
      CAPSTAN_CLOCK_OFFSET_MS: String(offsetMs),
      CAPSTAN_LEASE_MS: '1000',
      CAPSTAN_LOG: 'silent',
      CAPSTAN_WEBHOOK_RETRY_MS: '20',
    });
  }

  async #prepare(): Promise<Answer['body']> {
    const api = this.#places[0]!.host.as('editor');
    await register(api, LASTING);
    await register(api, TICKED);
    this.#receiver = await Receiver.open();
    this.#receiver.say(({ body, headers }) => {
      const isAcknowledged = this.#isOver || this.#options.chance() > 0.1;
      const deliveryId = String(headers['x-openwop-delivery-id']);
      this.#deliveries.push({ runId: body.runId, sequence: body.event.sequence, deliveryId, isAcknowledged });
      return isAcknowledged ? 204 : 500;
    });
    await api.post('/v1/webhooks', { url: this.#receiver.url, events: WANTED });
    return (await api.post(SCHEDULES, { workflowId: TICKED.id, cron: '* * * * * *' })).body;
  }

  #anyApi(): Api {
    return this.#pick(this.#places).host.as('editor');
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#options.chance() * items.length)]!;
  }

  async #client(): Promise<void> {
    while (!this.#isOver) {
      const deed = this.#options.chance();
      if (deed < 0.3 || this.#runIds.length === 0) await this.#create();
      else await this.#ask(this.#pick(this.#runIds.slice(-10)), deed);
    }
  }

  /** Asks until it is answered, of whomever, with the same key. */
  async #create(): Promise<void> {
    const key = unique('chaos');
    const body = { workflowId: LASTING.id, tags: [key] };
    for (let tries = 0; tries < 20; tries++) {
      const asked = await record(this.#operations, { what: 'create', key }, () =>
        this.#anyApi().post('/v1/runs', body, { 'idempotency-key': key }),
      );
      if (asked.status !== 201) continue;
      this.#runIds.push(asked.body.runId);
      // Now and then it does not trust the answer.
      if (this.#options.chance() > 0.2) return;
    }
  }

  async #ask(runId: string, deed: number): Promise<void> {
    const api = this.#anyApi();
    if (deed < 0.36)
      await record(this.#operations, { what: 'cancel', runId }, () => api.post(`/v1/runs/${runId}/cancel`));
    else if (deed < 0.7)
      await record(this.#operations, { what: 'events', runId }, () =>
        api.get(`/v1/runs/${runId}/events`, { accept: 'application/json' }),
      );
    else await record(this.#operations, { what: 'snapshot', runId }, () => api.get(`/v1/runs/${runId}`));
  }

  /** One fault after the other; then everything is as it should be again. */
  async #trouble(endsAt: number): Promise<void> {
    const faults = [this.#kill, this.#freeze, this.#drop, this.#cut, this.#restartDatabase];
    for (let round = 0; Date.now() < endsAt || round < faults.length; round++) {
      const fault = round < faults.length ? faults[round]! : this.#pick(faults);
      await fault.call(this, this.#pick(this.#places));
    }
    this.#isOver = true;
  }

  #count(fault: string): void {
    this.faults[fault] = (this.faults[fault] ?? 0) + 1;
  }

  async #kill(place: Place): Promise<void> {
    this.#count('kill');
    place.host.signal('SIGKILL');
    await place.host.exit;
    place.host = await this.#startAt(place);
  }

  async #freeze({ host }: Place): Promise<void> {
    this.#count('freeze');
    host.signal('SIGSTOP');
    await pass(FREEZE_MS);
    host.signal('SIGCONT');
  }

  async #drop({ proxy }: Place): Promise<void> {
    this.#count('drop');
    for (let count = 0; count < 5; count++) {
      proxy.drop();
      await pass(CUT_MS / 10);
    }
  }

  async #cut({ proxy }: Place): Promise<void> {
    this.#count('cut');
    await proxy.cut();
    await pass(CUT_MS);
    await proxy.restore();
  }

  /** What every client of a server sees that is restarted: all connections of the database end at once. */
  async #restartDatabase(): Promise<void> {
    this.#count('restart');
    const admin = new pg.Client(this.#options.databaseUrl);
    await admin.connect();
    await admin.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    await admin.end();
  }

  async #collect({ id }: Answer['body']): Promise<History> {
    const api = this.#places[0]!.host.as('editor');
    await until(
      () => api.get('/readyz'),
      ({ status }) => status === 200,
    );
    // It is calm when what the faults left behind is over: then the schedule has a run for a slot after them.
    const overAt = Date.now();
    await until(
      () => this.#slotsOf(api, id),
      (slots) => slots.some((slot) => slot > overAt),
    );
    const calmFrom = Math.ceil((Date.now() + SLOT_MS) / SLOT_MS) * SLOT_MS;
    const due = Array.from({ length: CALM_SLOTS }, (_, index) => calmFrom + index * SLOT_MS);
    const found = await until(
      () => this.#slotsOf(api, id),
      (slots) => slots.some((slot) => slot > due.at(-1)!),
    );
    await api.request('DELETE', `${SCHEDULES}/${id}`);
    const runsByKey = await this.#runsByKey(api);
    const logs = new Map<string, readonly ReadEvent[]>();
    for (const runId of [...runsByKey.values()].flat()) {
      await api.ended(runId);
      logs.set(runId, await api.events(runId));
    }
    const history = { operations: this.#operations, logs, runsByKey, wanted: WANTED, deliveries: this.#deliveries };
    await this.#receiver!.until(() => [...logs].every(([runId, log]) => this.#hasAll(runId, log)));
    return { ...history, slots: { found, everyMs: SLOT_MS, due } };
  }

  #hasAll(runId: string, log: readonly ReadEvent[]): boolean {
    const { sequence } = log.at(-1)!;
    return this.#deliveries.some((each) => each.runId === runId && each.sequence === sequence && each.isAcknowledged);
  }

  async #slotsOf(api: Api, scheduleId: string): Promise<number[]> {
    const { items } = (await api.get(`/v1/host/capstan/runs?limit=200&tag=schedule:${scheduleId}`)).body;
    const snapshots = await Promise.all(items.map(({ runId }: { runId: string }) => api.get(`/v1/runs/${runId}`)));
    return snapshots.map(({ body }) => Date.parse(body.metadata.scheduledFor));
  }

  async #runsByKey(api: Api): Promise<Map<string, string[]>> {
    const keys = new Set(this.#operations.flatMap(({ key }) => key ?? []));
    const found = new Map<string, string[]>();
    for (const key of keys) {
      const { items } = (await api.get(`/v1/host/capstan/runs?tag=${key}`)).body;
      found.set(
        key,
        items.map(({ runId }: { runId: string }) => runId),
      );
    }
    return found;
  }
}

/** How long a fault lasts is what it is about; nothing is waited for. */
function pass(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
