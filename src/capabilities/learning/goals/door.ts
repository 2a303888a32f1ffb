import { door } from '../../capability.ts';
import type { GoalService } from './service.ts';

export type Goals = GoalService;
export const Goals = door<Goals>()('goals');
