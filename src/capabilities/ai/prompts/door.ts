import { door } from '../../capability.ts';
import type { PromptService } from './service.ts';

export type Prompts = PromptService;
export const Prompts = door<Prompts>()('prompts');
