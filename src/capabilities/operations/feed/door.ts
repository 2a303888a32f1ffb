import { door } from '../../capability.ts';
import type { FeedService } from './service.ts';

export type Feed = FeedService;
export const Feed = door<Feed>()('feed');
