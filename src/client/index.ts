export {
  type Args,
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
  type FollowOptions,
  type ListName,
  type WaitOptions,
} from './client.ts';
export { type DiscoveryDocument, isCapstan, isShown } from './discovery.ts';
export { NotProvidedError, RefusedError, UnreachableError } from './errors.ts';
export type { HttpAnswer, HttpRequest, Machine } from './machine.ts';
export { platform } from './machine.ts';
export { OPERATIONS, type OperationName, type Page } from './operations.ts';
export type { RetryPolicy } from './retry.ts';
export type { EventPayload, EventType, RunEvent } from './run-event.ts';
export type { ServerSentEvent } from './server-sent-events.ts';
