import { type Static, Type } from 'typebox';
import type { InterruptRequest } from '../../../engine/people/interrupts.ts';
import { OneOf } from '../../../protocol/format/schema.ts';
import { invalid, type NodeType, type Outcome } from '../../../runtime/node-type.ts';

const Length = Type.Optional(Type.Number({ minimum: 0 }));

/** The names that definitions use for the length of a delay. */
const SPELLINGS = ['delayMs', 'ms', 'durationMs'] as const;

/** Waits for some time. The run goes back to the queue meanwhile, so waiting takes no resources. */
export const delay: NodeType = {
  typeId: 'core.delay',
  description: 'Waits for a time.',
  inputs: ['delayMs'],
  outputs: () => ['waitedMs'],
  role: 'pure',
  config: Type.Object({ delayMs: Length, ms: Length, durationMs: Length }),
  run: ({ config, inputs, startedAt, now }) => {
    const given = Object.hasOwn(inputs, 'delayMs') ? inputs : config;
    const spelling = SPELLINGS.find((name) => given[name] !== undefined);
    const length = spelling === undefined ? 0 : given[spelling];
    if (typeof length !== 'number' || !Number.isFinite(length) || length < 0) {
      return invalid('The delay must be a number of milliseconds, 0 or more.');
    }
    const until = startedAt + length;
    return now() < until ? { sleepUntil: until } : { done: { outputs: { waitedMs: length } } };
  },
};

const WaitConfig = Type.Object({
  mode: OneOf(['duration', 'until', 'webhook']),
  seconds: Type.Optional(
    Type.Number({ minimum: 0, maximum: 86_400, description: 'Length of the wait, for mode `duration`' }),
  ),
  timestamp: Type.Optional(
    Type.String({ description: 'End of the wait, for mode `until`: an ISO 8601 date and time' }),
  ),
  signatureHint: Type.Optional(Type.String({ description: 'What the caller should sign with, for mode `webhook`' })),
});
type WaitConfig = Static<typeof WaitConfig>;

/** Waits for a duration, until a time, or for a call from outside. */
export const wait: NodeType = {
  typeId: 'core.flow.wait',
  description: 'Waits for a time or for a call from outside.',
  outputs: () => ['resumed', 'payload'],
  role: 'pure',
  config: WaitConfig,
  check: (config) => {
    const { mode, seconds, timestamp } = config as WaitConfig;
    if (mode === 'duration' && seconds === undefined)
      return [{ path: '.seconds', message: 'is required in the mode `duration`' }];
    if (mode !== 'until' || Number.isFinite(Date.parse(timestamp ?? ''))) return [];
    return [{ path: '.timestamp', message: 'must be an ISO 8601 date and time' }];
  },
  run: ({ config, startedAt, now, answer }) => {
    const { mode, seconds = 0, timestamp = '', signatureHint } = config as WaitConfig;
    if (mode === 'webhook') return answer ? resumed(answer.value) : { interrupt: callRequest(signatureHint) };
    const until = mode === 'duration' ? startedAt + seconds * 1_000 : Date.parse(timestamp);
    return now() < until ? { sleepUntil: until } : { done: { outputs: { resumed: true } } };
  },
};

function callRequest(signatureHint: string | undefined): InterruptRequest {
  const eventType = signatureHint === undefined ? 'webhook' : `webhook:${signatureHint}`;
  return { kind: 'external-event', data: { eventType, correlation: {} } };
}

function resumed(payload: unknown): Outcome {
  return { done: { outputs: { resumed: true, payload: payload ?? null } } };
}
