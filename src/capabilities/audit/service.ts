import type { Write } from '../../store/sql.ts';
import type { Host } from '../capability.ts';
import { type AuditRecord, recordWrite } from './record.ts';

export type AuditService = ReturnType<typeof auditService>;

export function auditService({ runtime }: Host) {
  return {
    /** What to write along with the thing that happened: both are committed, or neither. */
    record: (record: AuditRecord): Write[] => [recordWrite(record, runtime)],
  };
}
