import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Audit, type AuditRecord, recordBy } from '../src/capabilities/trust/audit/door.ts';
import { recordWrite } from '../src/capabilities/trust/audit/record.ts';
import { AUDIT_ACTIONS } from '../src/protocol/trust/audit-actions.ts';
import type { Subject } from '../src/runtime/run-row.ts';
import type { Unit, Write } from '../src/store/sql.ts';

/** Goal: every action of the audit log is registered and documented. Misspelt ones are errors of the compiler. */

describe('the actions of the audit log', () => {
  it('are all in docs/audit.md, and no others are', () => {
    const page = readFileSync(new URL('../docs/audit.md', import.meta.url), 'utf8');
    const [, table = ''] = /\| Action \| When \|\n\|---\|---\|\n([\s\S]*?)\n\n/.exec(page) ?? [];
    const documented = table.split('\n').flatMap((row) => row.split('|')[1]!.match(/[a-z.]+/g) ?? []);
    expect(documented.toSorted()).toEqual(Object.keys(AUDIT_ACTIONS).toSorted());
  });

  it('are each explained in one sentence', () => {
    for (const sentence of Object.values(AUDIT_ACTIONS)) expect(sentence).toMatch(/^[A-Z].*\.$/);
  });

  it('do not compile where they are misspelt', () => {
    const recordMisspelt = [
      // @ts-expect-error: the action is `run.create`
      (record: AuditRecord): AuditRecord => ({ ...record, action: 'run.craete' }),
      (audit: Audit, by: Subject): Unit =>
        // @ts-expect-error: the action is `schedule.create`
        recordBy(audit, by, 'schedule.craete', 'sch-1'),
      (needs: Parameters<typeof recordWrite>[1], record: AuditRecord): Write =>
        // @ts-expect-error: an action that was read from somewhere is not known to be one
        recordWrite({ ...record, action: 'run.create' as string }, needs),
    ];
    expect(recordMisspelt).toHaveLength(3);
  });
});
