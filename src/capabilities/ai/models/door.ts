import { door } from '../../capability.ts';
import type { ModelService } from './service.ts';

export type Models = ModelService;
export const Models = door<Models>()('models');
