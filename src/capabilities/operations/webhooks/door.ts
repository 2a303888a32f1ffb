import type { Refusal } from '../../../protocol/errors.ts';
import type { WebhookSubscription } from '../../../protocol/operations/webhooks.ts';
import type { Change } from '../../../runtime/change.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** Subscriptions to events of runs, which are signed and delivered to a URL. */
export interface Webhooks {
  register(caller: Caller, wanted: NewWebhook): Promise<Change<IssuedWebhook> | Refusal>;
  /** Has the interrupts and the end of a run that the same unit starts delivered to a URL. */
  callback(caller: Caller, wanted: NewCallback): Promise<Change<IssuedWebhook> | Refusal>;
  /** Stops deliveries. `scopeName` is the scope that the caller names, if any. */
  unregister(caller: Caller, webhookId: string, scopeName: string | undefined): Promise<Change | Refusal>;
  /** Webhooks that the caller may see, newest first. */
  list(caller: Caller, before: string | undefined, limit: number): Promise<WebhookSubscription[]>;
}

/** The door to webhooks. */
export const Webhooks = door<Webhooks>()('webhooks');

/** A webhook to be registered. */
export interface NewWebhook {
  readonly url: string;
  readonly events: readonly string[];
  /** Deliver events of runs with one of these tags only. */
  readonly tags?: readonly string[] | undefined;
  /** The scope that the caller names, if any. */
  readonly scopeName?: string | undefined;
}

/** Where one run is to report. */
export interface NewCallback {
  readonly runId: string;
  readonly url: string;
  /** Origin under which callers reach this host: that of the URL that answers an interrupt. */
  readonly origin: string;
}

/** A webhook with its new signing secret, which is shown here and never again. */
export interface IssuedWebhook {
  readonly webhookId: string;
  readonly secret: string;
  readonly secretFingerprint: string;
}
