import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { realIds } from '../../../system/real.ts';
import type { AuditRecord } from './door.ts';
import { recordWrite } from './record.ts';

const SECRET = 'sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789';

describe('a record on its way into the log', () => {
  it('carries no secret, wherever one was put', () => {
    const { params } = write({
      actor: SECRET,
      target: `thing ${SECRET}`,
      details: { note: `see ${SECRET}`, [SECRET]: 1, deep: [{ text: SECRET }] },
    });
    expect(JSON.stringify(params)).not.toContain('abcdefghijkl');
  });

  it('is text that every reader of JSON takes for the same', () => {
    const { params } = write({ actor: 'a\ud800', details: { '\udc00': 'b\ud800' } });
    for (const param of params) expect(String(param).isWellFormed()).toBe(true);
    expect(params.join()).not.toMatch(/\\ud[89a-f]/i);
  });

  it('is sorted by when it was made', () => {
    const ids = Array.from({ length: 50 }, () => write({}).params.at(-1) as string);
    expect(ids).toEqual([...ids].sort());
  });
});

const clock = new ManualClock();
const ids = realIds();

function write(record: Partial<AuditRecord>) {
  return recordWrite({ tenant: 'alpha', actor: 'ada', action: 'run.create', ...record }, { clock, ids });
}
