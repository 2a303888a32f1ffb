import { door } from '../../capability.ts';
import type { AuditService } from './service.ts';

export type Audit = AuditService;
export const Audit = door<Audit>()('audit');
