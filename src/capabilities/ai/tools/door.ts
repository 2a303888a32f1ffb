import { door } from '../../capability.ts';
import type { ToolService } from './service.ts';

export type Tools = ToolService;
export const Tools = door<Tools>()('tools');
