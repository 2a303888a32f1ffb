import { door } from '../../capability.ts';
import type { WebhookService } from './service.ts';

export type Webhooks = WebhookService;
export const Webhooks = door<Webhooks>()('webhooks');
