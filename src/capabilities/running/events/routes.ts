import { Type } from 'typebox';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { isTerminalStatus, PollReply, RunEvents, RunParams } from '../../../protocol/running/runs.ts';
import { STREAM_MODES, type StreamMode } from '../../../protocol/running/stream-modes.ts';
import { route } from '../../request.ts';
import type { EventService } from './service.ts';

/** What the handlers of event routes use. */
interface Services {
  readonly events: EventService;
}
const operation = route<Services>();

const BUFFER_MAX_MS = 5_000;
const POLL_DEFAULT_S = 30;
/** How long a poll waits at most. */
export const POLL_MAX_S = 60;

const streamRunEvents = operation({
  operationId: 'streamRunEvents',
  summary: 'Follow a run: server-sent events, or the whole log as JSON',
  method: 'GET',
  path: '/v1/runs/{runId}/events',
  scope: 'runs:read',
  params: RunParams,
  query: Type.Object({
    streamMode: Type.Optional(Type.String({ description: 'updates, values, messages, debug, or a list of them' })),
    bufferMs: Type.Optional(Type.String({ description: `0 to ${BUFFER_MAX_MS}` })),
  }),
  replies: { 200: ['text/event-stream', RunEvents] },
  refusals: [400, 404],
  handle: async (request, { events }) => {
    const row = await events.row(request.caller, request.params.runId);
    if (!row) return NOT_FOUND;
    const modes = streamModes(request.query.streamMode);
    if (isRefusal(modes)) return modes;
    const bufferMs = numberIn('bufferMs', request.query.bufferMs, { min: 0, max: BUFFER_MAX_MS, otherwise: 0 });
    if (isRefusal(bufferMs)) return bufferMs;
    if (wantsJson(request.header('accept'))) {
      return {
        status: 200,
        headers: { 'Content-Type': 'application/json; charset=utf-8' },
        stream: () => events.document(row),
      };
    }
    const after = lastEventId(request.header('last-event-id'));
    if (isRefusal(after)) return after;
    return {
      status: 200,
      headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' },
      takesTurns: true,
      stream: (signal) =>
        events.stream(row, { modes, bufferMs, after, notices: request.caller.scopes.has('feedback:read') }, signal),
    };
  },
});

/** JSON only if the caller accepts it and does not accept streams. */
function wantsJson(accept = ''): boolean {
  return accept.includes('application/json') && !accept.includes('text/event-stream');
}

function streamModes(text = 'updates'): readonly StreamMode[] | Refusal {
  const names = text.split(',').map((name) => name.trim());
  const isKnown = names.every((name): name is StreamMode => (STREAM_MODES as readonly string[]).includes(name));
  const isMixable = names.length === 1 || !names.includes('values');
  if (isKnown && isMixable) return names as StreamMode[];
  return refuse('unsupported_stream_mode', 'The stream mode is unknown, or cannot be combined with others.', {
    supported: [...STREAM_MODES],
  });
}

function lastEventId(header: string | undefined): number | Refusal {
  if (header === undefined || header === '') return -1;
  return numberIn('Last-Event-ID', header, { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: -1 });
}

function numberIn(
  field: string,
  text: string | undefined,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): number | Refusal {
  if (text === undefined) return otherwise;
  const value = /^-?[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  return refuse('validation_error', `${field} must be a whole number from ${min} to ${max}.`, { field, min, max });
}

const pollRunEvents = operation({
  operationId: 'pollRunEvents',
  summary: 'Get new events of a run; waits for some if there are none',
  method: 'GET',
  path: '/v1/runs/{runId}/events/poll',
  scope: 'runs:read',
  params: RunParams,
  query: Type.Object({
    lastSequence: Type.Optional(Type.String({ description: 'Sequence of the last event that the caller has' })),
    since: Type.Optional(Type.String({ description: 'Old spelling of lastSequence' })),
    timeout: Type.Optional(Type.String({ description: `Seconds to wait, 1 to ${POLL_MAX_S}` })),
  }),
  replies: { 200: PollReply },
  refusals: [400, 404],
  handle: async (request, { events }) => {
    const { lastSequence, since, timeout } = request.query;
    const after = numberIn('lastSequence', lastSequence ?? since, {
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
      otherwise: -1,
    });
    const waitS = numberIn('timeout', timeout, { min: 1, max: POLL_MAX_S, otherwise: POLL_DEFAULT_S });
    const { runId } = request.params;
    if (isRefusal(after) || isRefusal(waitS)) {
      return (await events.row(request.caller, runId)) ? [after, waitS].find(isRefusal)! : NOT_FOUND;
    }
    const waiting = { waitMs: waitS * 1_000, signal: request.signal };
    const polled = await events.poll(request.caller.subject, runId, after, waiting);
    if (!polled) return NOT_FOUND;
    const last = polled.events.at(-1)?.sequence;
    const isTerminal = isTerminalStatus(polled.status);
    const rest = JSON.stringify({
      runId,
      isComplete: isTerminal && (last ?? after) >= polled.sequence,
      lastEventSeq: last ?? Math.max(after, polled.sequence),
      runStatus: polled.status,
      isTerminal,
    });
    // Stored events are JSON text already, so they are inserted as they are.
    return { status: 200, text: `${rest.slice(0, -1)},"events":[${polled.events.map(({ body }) => body).join(',')}]}` };
  },
});

/** The routes of events. */
export const routes = [streamRunEvents, pollRunEvents];
