import { expect, inject, it } from 'vitest';
import { Chaos } from '../histories/chaos.ts';
import { problemsWith } from '../histories/check-history.ts';
import type { History, Operation } from '../histories/history.ts';
import { chanceOf } from '../support/chance.ts';
import { migratedDatabase } from '../support/database.ts';
import { killableHosts } from '../support/killed.ts';

/**
 * Goal: what clients and receivers see of three hosts on one PostgreSQL, while their clocks differ by minutes, hosts are
 * killed and frozen, connections cut and the database restarted, is consistent with the protocol's model. Method:
 * everything that is asked and answered is recorded, and a checker goes through it. `npm run chaos` does so for ten
 * minutes.
 */
const { start } = killableHosts();
const FOR_MS = Number(process.env.CAPSTAN_CHAOS_SECONDS ?? '4') * 1_000;
const SEED = Number(process.env.CAPSTAN_CHAOS_SEED ?? '15');

it(`what is seen in chaos is consistent: seed ${SEED}`, { timeout: FOR_MS * 2 + 120_000 }, async () => {
  const databaseUrl = await migratedDatabase(inject('postgresUrl'));
  const chaos = new Chaos({ databaseUrl, start, chance: chanceOf(SEED), forMs: FOR_MS });
  try {
    const history = await chaos.history();
    expect(problemsWith(history)).toEqual([]);
    expect(Object.keys(chaos.faults).sort()).toEqual(['cut', 'drop', 'freeze', 'kill', 'restart']);
    expect(history.logs.size).toBeGreaterThan(5);
  } finally {
    await chaos.close();
  }
});

const event = (sequence: number, type: string) => ({ sequence, type, eventId: `e${sequence}` });
const LOG = [event(0, 'run.started'), event(1, 'node.started'), event(2, 'run.cancelled')];
const read = (from: number, to: number, count: number): Operation => ({
  what: 'events',
  runId: 'r',
  from,
  to,
  status: 200,
  body: { events: LOG.slice(0, count) },
});
const created: Operation = { what: 'create', key: 'k', from: 0, to: 1, status: 201, body: { runId: 'r' } };
const cancelled: Operation = { what: 'cancel', runId: 'r', from: 4, to: 5, status: 200, body: { status: 'cancelled' } };
const delivery = (sequence: number, isAcknowledged = true, deliveryId = `d${sequence}`) => ({
  runId: 'r',
  sequence,
  deliveryId,
  isAcknowledged,
});
const SOUND: History = {
  operations: [created, read(2, 3, 2), cancelled, read(6, 7, 3)],
  logs: new Map([['r', LOG]]),
  runsByKey: new Map([['k', ['r']]]),
  wanted: ['run.started', 'run.cancelled'],
  deliveries: [delivery(0, false), delivery(0), delivery(2)],
  slots: { found: [1_000, 3_000], everyMs: 1_000, due: [3_000] },
};

it('a sound history has no problems', () => {
  expect(problemsWith(SOUND)).toEqual([]);
});

it.each<[string, Partial<History>]>([
  ['an acknowledged run that is gone', { runsByKey: new Map() }],
  ['two runs of one key', { runsByKey: new Map([['k', ['r', 's']]]) }],
  ['two answers to one key', { operations: [created, { ...created, body: { runId: 's' } }] }],
  ['a log with a gap', { logs: new Map([['r', [LOG[0]!, LOG[2]!]]]) }],
  ['two endings', { logs: new Map([['r', [...LOG, event(3, 'run.completed')]]]) }],
  ['a read that goes back', { operations: [created, cancelled, read(6, 7, 3), read(8, 9, 2)] }],
  ['a read of something else', { operations: [{ ...read(2, 3, 1), body: { events: [{ ...LOG[0], eventId: 'x' }] } }] }],
  ['an acknowledged cancellation that is not seen', { operations: [created, cancelled, read(6, 7, 2)] }],
  ['a cancellation before it is asked for', { operations: [created, read(2, 3, 3), cancelled] }],
  ['a late cancellation that is told another end', { operations: [{ ...cancelled, body: { status: 'completed' } }] }],
  ['an acknowledged run that is not found', { operations: [created, { ...read(2, 3, 0), status: 404 }] }],
  [
    'a snapshot that goes back',
    {
      operations: [cancelled, read(6, 7, 3), { ...read(8, 9, 0), what: 'snapshot', body: { status: 'running' } }],
    },
  ],
  ['a delivery that never came', { deliveries: [delivery(0)] }],
  ['deliveries out of order', { deliveries: [delivery(0, false), delivery(2), delivery(0)] }],
  ['a delivery under two ids', { deliveries: [delivery(0), delivery(0, true, 'x'), delivery(2)] }],
  ['a slot with two runs', { slots: { found: [3_000, 3_000], everyMs: 1_000, due: [] } }],
  ['a slot without a run', { slots: { found: [1_000], everyMs: 1_000, due: [2_000] } }],
  ['a run between slots', { slots: { found: [1_500], everyMs: 1_000, due: [] } }],
])('%s is a problem', (_what, broken) => {
  expect(problemsWith({ ...SOUND, ...broken })).not.toEqual([]);
});
