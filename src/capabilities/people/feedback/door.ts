import { door } from '../../capability.ts';
import type { FeedbackService } from './service.ts';

export type Feedback = FeedbackService;
export const Feedback = door<Feedback>()('feedback');
