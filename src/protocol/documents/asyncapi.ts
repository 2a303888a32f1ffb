import { FEED_EVENTS, FeedData } from '../operations/feed.ts';
import { Annotation, RUN_ANNOTATED } from '../people/annotations.ts';
import { EVENTS, type EventType, RunEventDoc } from '../running/events.ts';
import { RunSnapshot } from '../running/runs.ts';
import { modeIncludes, STREAM_MODES } from '../running/stream-modes.ts';

type Json = Record<string, unknown>;

/**
 * Generates the AsyncAPI document of the event streams: one message per event type, with the stream modes that include
 * it.
 */
export function asyncapiDocument(info: { title: string; version: string }): Json {
  const types = Object.keys(EVENTS) as EventType[];
  return {
    asyncapi: '3.0.0',
    info: { ...info, description: 'Server-sent events of an OpenWOP v1 host.' },
    defaultContentType: 'application/json',
    channels: {
      runEvents: {
        address: '/v1/runs/{runId}/events',
        description: "Events of one run. The frame's `id` is the sequence and its `event` the type.",
        parameters: { runId: { description: 'Id of the run' } },
        messages: Object.fromEntries([
          ...types.map((type) => [type, { $ref: `#/components/messages/${type}` }]),
          ['state.snapshot', { $ref: '#/components/messages/state.snapshot' }],
          [RUN_ANNOTATED, { $ref: `#/components/messages/${RUN_ANNOTATED}` }],
        ]),
      },
      tenantFeed: {
        address: '/v1/host/capstan/events',
        description: "All changes in a tenant. The frame's `id` is the cursor for resuming the stream.",
        messages: Object.fromEntries(FEED_EVENTS.map((event) => [event, { name: event, payload: plain(FeedData) }])),
      },
    },
    operations: {
      followRun: { action: 'send', channel: { $ref: '#/channels/runEvents' } },
      followTenant: { action: 'send', channel: { $ref: '#/channels/tenantFeed' } },
    },
    components: {
      messages: Object.fromEntries([
        ...types.map((type) => [type, messageOf(type)]),
        ['state.snapshot', { name: 'state.snapshot', 'x-stream-modes': ['values'], payload: plain(RunSnapshot) }],
        // Sent only to live streams and not part of the log, so the frame has no `id`.
        [RUN_ANNOTATED, { name: RUN_ANNOTATED, 'x-stream-modes': ['updates', 'debug'], payload: plain(Annotation) }],
      ]),
    },
  };
}

function messageOf(type: EventType): Json {
  const { properties, ...rest } = plain(RunEventDoc) as { properties: Json };
  const modes = STREAM_MODES.filter((mode) => mode !== 'values' && modeIncludes(mode, type));
  return {
    name: type,
    'x-stream-modes': modes,
    payload: { ...rest, properties: { ...properties, type: { const: type }, payload: plain(EVENTS[type].payload) } },
  };
}

function plain(schema: object): Json {
  const { $id: _id, ...rest } = schema as Json;
  return JSON.parse(JSON.stringify(rest)) as Json;
}
