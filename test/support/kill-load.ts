import { expect } from 'vitest';
import type { Answer, Api } from './api.ts';
import { edge, line, node, register, unique, workflow } from './definitions.ts';
import { expectSoundLog } from './killed.ts';

/** A mixed load for hosts that are killed, and what must hold of it afterwards. */

type Event = Answer['body'];

export const REQUESTS_PER_ROUND = 100;

/** What a caller asked for, and what it knows came of it. */
export interface Asked {
  readonly body: { readonly workflowId: string; readonly tags: readonly string[] };
  readonly key: string | undefined;
  readonly ends: string;
  runId?: string;
}

const effectful = workflow(
  [node('before'), node('effect', 'core.conformance.side-effect'), node('after')],
  line('before', 'effect', 'after'),
);
const retrying = workflow(
  [node('flaky', 'core.fail', { settings: { retry: { maxRetries: 3, delayMs: 20 } } }), node('rescue')],
  [edge('flaky', 'rescue', { triggerRule: 'any_failed' })],
);
const waiting = workflow(
  [node('a'), node('wait', 'core.delay', { config: { ms: 80 } }), node('b')],
  line('a', 'wait', 'b'),
);

/** Workflow to the status in which its runs end. */
const KINDS: readonly (readonly [workflowId: string, ends: string, inputs?: object])[] = [
  ['conformance-noop', 'completed'],
  ['conformance-multi-node', 'completed'],
  ['conformance-failure', 'failed'],
  ['conformance-identity', 'completed', { payload: { a: [1, 2, 3] } }],
  ['conformance-subworkflow-parent', 'completed'],
  ['conformance-channel-ttl', 'completed'],
  [effectful.id, 'completed'],
  [effectful.id, 'completed'],
  [retrying.id, 'completed'],
  [waiting.id, 'completed'],
];

export async function registerAll(api: Api): Promise<void> {
  for (const definition of [effectful, retrying, waiting]) await register(api, definition);
}

/** Asks for many runs at once. `onTaken` hears of each that was acknowledged. */
export async function ask(
  apis: readonly Api[],
  chance: () => number,
  onTaken: (count: number) => void,
): Promise<Asked[]> {
  let taken = 0;
  const all = Array.from({ length: REQUESTS_PER_ROUND }, async (_, index): Promise<Asked> => {
    const [workflowId, ends, inputs = {}] = KINDS[Math.floor(chance() * KINDS.length)]!;
    const tag = unique('asked');
    const body = { workflowId, inputs, tags: [tag] };
    const asked: Asked = { body, ends, key: chance() < 0.5 ? tag : undefined };
    await tryOnce(apis[index % apis.length]!, asked);
    if (asked.runId !== undefined) onTaken(++taken);
    return asked;
  });
  return Promise.all(all);
}

/** A host that dies may leave a request without an answer; any answer it gives must be the right one. */
export async function tryOnce(api: Api, asked: Asked): Promise<void> {
  const headers: Record<string, string> = asked.key === undefined ? {} : { 'idempotency-key': asked.key };
  const answer = await api.post('/v1/runs', asked.body, headers).catch(() => undefined);
  if (!answer) return;
  expect(answer.status, answer.text).toBe(201);
  if (asked.runId !== undefined) expect(answer.body.runId).toBe(asked.runId);
  asked.runId = answer.body.runId;
}
/** Everything that was acknowledged is there and has come to its right end. */
export async function expectAllKept(api: Api, all: readonly Asked[]): Promise<Event[]> {
  const logs: Event[] = [];
  for (const batch of chunksOf(all, 40)) {
    const found = await Promise.all(
      batch.map(async ({ runId, ends, body, key }) => {
        if (key !== undefined || runId !== undefined) {
          const { items } = (await api.get(`/v1/host/capstan/runs?tag=${body.tags[0]}`)).body;
          expect(items.map((item: { runId: string }) => item.runId)).toEqual([runId]);
        }
        if (runId === undefined) return [];
        const snapshot = await api.ended(runId);
        expect(snapshot.status, JSON.stringify(snapshot)).toBe(ends);
        const events = await api.events(runId);
        expectSoundLog(events);
        return events;
      }),
    );
    logs.push(...found.flat());
  }
  return logs;
}

export function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

/** Every run of the tenant has ended soundly, also those whose caller never heard of them. */
export async function expectAllEnded(api: Api): Promise<void> {
  for (let cursor = ''; ; ) {
    const { body } = await api.get(`/v1/host/capstan/runs?limit=200${cursor}`);
    for (const { runId } of body.items) await api.ended(runId);
    if (body.nextCursor === undefined) return;
    cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
  }
}

export interface EffectRow {
  readonly effect_id: string;
  readonly state: string;
  readonly attempts: number;
  readonly fired: number;
}

export const EFFECTS = `SELECT effects.effect_id, state, attempts, COALESCE(fired, 0) AS fired
                 FROM effects LEFT JOIN effect_probes USING (effect_id) WHERE provider_key = 'tool'`;

/** An effect is fired at most once for each attempt, and never again once its outcome is known. */
export function expectOnce(rows: readonly EffectRow[], recorded: ReadonlyMap<string, number>): void {
  expect(rows.length).toBeGreaterThan(10);
  for (const { effect_id, state, attempts, fired } of rows) {
    expect(state).toBe('done');
    expect(fired).toBeGreaterThanOrEqual(1);
    expect(fired).toBeLessThanOrEqual(attempts);
    if (recorded.has(effect_id)) expect(fired).toBe(recorded.get(effect_id));
  }
  // Those that were under way at a kill may be repeated; how many that are depends on the machine.
  const once = rows.filter(({ fired }) => fired === 1);
  expect(once.length).toBeGreaterThan(rows.length / 2);
}
