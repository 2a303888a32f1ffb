import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callerAs } from '../../../../test/support/capability-host.ts';
import { openServiceHost, type ServiceHost } from '../../../../test/support/service-host.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import type { TriggerDelivery } from '../../../protocol/starting/triggers.ts';
import { commitOrThrow } from '../../../runtime/change.ts';
import type { WorkItem } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import { DELIVERIES_KEPT, DeliveryLog } from './deliveries.ts';
import { forgetDeliveredRun } from './delivery-records.ts';
import { deleteTrigger, insertTrigger, TRIGGER_TABLES, type TriggerRow } from './records.ts';

const DAY_MS = 86_400_000;
const caller = callerAs('ada');

function triggerRow(trigger_id: string): TriggerRow {
  return {
    trigger_id,
    tenant: 'alpha',
    tenant_name: 'alpha',
    workspace: null,
    principal: 'ada',
    issuer: 'host',
    lane: 'user',
    workflow_id: 'wf',
    name: trigger_id,
    type: 'webhook',
    event_type: '',
    config: '{"scheme":"path"}',
    is_enabled: 1,
    sealed: null,
    path_hash: trigger_id,
    former_path_hash: null,
    former_path_until: null,
    rotated_at: null,
    last_error: null,
    revision: 1,
    created_at: 0,
    updated_at: 0,
  };
}

describe('the delivery log', () => {
  const [one, other] = [triggerRow('trg-1'), triggerRow('trg-2')];
  let service: ServiceHost;
  let log: DeliveryLog;
  let written: Unit[];
  beforeEach(async () => {
    written = [];
    const beforeCommit = async (unit: Unit): Promise<void> => void written.push(unit);
    service = await openServiceHost({ tables: TRIGGER_TABLES, beforeCommit });
    await commitOrThrow(service.store, [insertTrigger(one, 10), insertTrigger(other, 10)]);
    log = new DeliveryLog(service.host.runtime);
    written.length = 0;
  });
  afterEach(() => service.close());

  async function linesOf({ trigger_id }: TriggerRow): Promise<TriggerDelivery[]> {
    const lines = await log.list(caller, trigger_id, {}, 1_000);
    if (isRefusal(lines)) throw new Error(lines.message);
    return lines;
  }

  it('writes what came in a moment together, once', async () => {
    for (let count = 0; count < 9; count++) log.note(one, 'ignored', { deliveryId: `d-${count}` });
    log.note(other, 'challenge');
    service.clock.advance(249);
    expect(written).toEqual([]);
    await log.write();
    await log.write();
    service.clock.advance(1_000);
    expect(written).toHaveLength(1);
    expect((await linesOf(one)).map(({ deliveryId }) => deliveryId)[0]).toBe('d-8');
    expect(await linesOf(other)).toMatchObject([{ outcome: 'challenge' }]);
  });

  it('has one line for all that was refused for one reason, however much it is', async () => {
    for (let count = 0; count < 5_000; count++) {
      log.count(one, 'refused', 'signature_invalid');
      if (count % 1_000 === 999) await log.write();
    }
    log.count(one, 'limited', 'rate_limited');
    await log.write();
    expect(await linesOf(one)).toMatchObject([
      { outcome: 'limited', reason: { code: 'rate_limited' } },
      { outcome: 'refused', reason: { code: 'signature_invalid' }, count: 5_000 },
    ]);
    expect(written.flat().length).toBeLessThan(20);
  });

  it('keeps so many lines of each trigger, the newest', async () => {
    log.note(other, 'ignored', { deliveryId: 'elsewhere' });
    for (let count = 0; count < DELIVERIES_KEPT + 7; count++) log.note(one, 'ignored', { deliveryId: `d-${count}` });
    await log.write();
    const lines = await linesOf(one);
    expect(lines).toHaveLength(DELIVERIES_KEPT);
    expect(lines.at(-1)!.deliveryId).toBe('d-7');
    expect(await linesOf(other)).toHaveLength(1);
  });

  it('keeps lines for a week', async () => {
    log.note(one, 'ignored', { deliveryId: 'old' });
    await log.write();
    service.clock.advance(6 * DAY_MS);
    log.note(one, 'ignored', { deliveryId: 'new' });
    await log.write();
    const { dueAgainAt } = await log.sweep({} as WorkItem);
    expect(dueAgainAt).toBeGreaterThan(service.clock.now());
    expect(await linesOf(one)).toHaveLength(2);
    service.clock.advance(DAY_MS + 1);
    await log.sweep({} as WorkItem);
    expect(await linesOf(one)).toMatchObject([{ deliveryId: 'new' }]);
  });

  it('says which field was wrong, and nothing of what was in it', async () => {
    const refusal = refuse('validation_error', 'The value "hunter2" is none.', { field: 'inputs.number' });
    log.note(one, 'invalid', { refusal, deliveryId: 'd sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789' });
    await log.write();
    const [line] = await linesOf(one);
    expect(line!.reason).toEqual({ code: 'validation_error', field: 'inputs.number' });
    expect(JSON.stringify([line, written])).not.toMatch(/hunter2|abcdefghij/);
  });

  it('forgets runs that are forgotten, and triggers that are gone', async () => {
    const { writes } = log.started(one, 'run-1', undefined);
    await commitOrThrow(service.store, writes);
    log.note(one, 'duplicate', { runId: 'run-2' });
    await log.write();
    await commitOrThrow(service.store, [forgetDeliveredRun({ tenant: 'alpha', runId: 'run-1' })]);
    expect(await linesOf(one)).toMatchObject([{ runId: 'run-2' }]);
    await commitOrThrow(service.store, deleteTrigger(one));
    log.note(one, 'ignored');
    await log.write();
    expect(await service.store.read({ sql: 'SELECT * FROM trigger_deliveries', params: [] })).toEqual([]);
  });

  it('leaves lines out when the store is away, and no sender waits for it', async () => {
    const away = { ...service.host.runtime.store, commit: () => Promise.reject(new Error('away')) };
    const warned: unknown[] = [];
    const logger = { ...service.host.runtime.log, warn: (facts: object) => void warned.push(facts) };
    const lost = new DeliveryLog({ ...service.host.runtime, store: away, log: logger });
    lost.note(one, 'ignored');
    await lost.write();
    expect(warned).toHaveLength(1);
  });
});
