import type { RunError } from '../../protocol/errors.ts';
import { deepEqual, type JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { PlannedNode } from '../definition/plan.ts';
import { copied, isListReducer, mayAccess, overflows, reduceWrite, takesTtl } from './channels.ts';
import type { Run, RunFacts } from './run.ts';
import { declaredChannel, isDeclaredChannel } from './visible-variables.ts';

/** What a node returns on success. */
export interface NodeResult {
  readonly outputs?: JsonObject;
  readonly variables?: JsonObject;
  readonly channels?: readonly ChannelWrite[];
}

/** A node's write to a channel. */
interface ChannelWrite {
  readonly channel: string;
  readonly value: unknown;
  /** Used only if the workflow does not declare the channel. */
  readonly reducer: string;
  readonly ttlMs?: number | undefined;
  /** Why the value does not match the channel's schema. */
  readonly problem?: string;
}

const RETRY_DELAY_MAX_MS = 30_000;

/**
 * The events of a node that succeeded: its changes, then `node.completed`. If a channel refuses a write, the attempt
 * fails instead.
 */
export function completeNode(run: Run, nodeId: string, result: NodeResult, now: number): NewEvent[] {
  const refused = refusedWrites(run, nodeId, result);
  if (refused) return [failAttempt(run, nodeId, refused)];
  const { outputs } = result;
  const additions = [
    ...(result.channels ?? []).map((write) => writeChannel(run, nodeId, write, now)),
    ...(outputs ? createArtifact(run, nodeId) : []),
  ];
  // Skips changes already in the log: normally none, but a fork may begin between them.
  const { additions: made = 0 } = run.nodes[run.plan.node(nodeId)!.index]!;
  return [
    ...Object.entries(result.variables ?? {}).flatMap(([name, value]) => changeVariable(run, nodeId, name, value)),
    ...additions.slice(made),
    { type: 'node.completed', nodeId, payload: outputs ? { nodeId, outputs } : { nodeId } },
  ];
}

function refusedWrites(run: Run, nodeId: string, result: NodeResult): RunError | undefined {
  const channelVariable = Object.keys(result.variables ?? {}).find((name) => isDeclaredChannel(run, name));
  if (channelVariable !== undefined) {
    return permanent(
      'validation_error',
      `${JSON.stringify(channelVariable)} is a channel and takes no variable writes.`,
    );
  }
  const channels = result.channels ?? [];
  if (channels.length === 0) return undefined;
  const states = new Map(run.channels);
  for (const write of channels) {
    const refused = refusedWrite(run, nodeId, write, states.get(write.channel));
    if (refused) return refused;
    states.set(write.channel, stateAfter(run, write, states.get(write.channel)));
  }
  return undefined;
}

function refusedWrite(run: Run, nodeId: string, write: ChannelWrite, state: unknown): RunError | undefined {
  const declared = declaredChannel(run, write.channel);
  const { node } = run.plan.node(nodeId)!;
  if (!mayAccess(declared, node, 'writers')) return accessDenied(write.channel, node);
  const { problem } = write;
  if (problem) return permanent('validation_error', `Channel ${JSON.stringify(write.channel)}: ${problem}.`);
  if (!overflows(state, declared?.reducer ?? write.reducer, write.value, declared?.maxSize)) return undefined;
  return permanent('validation_error', `Channel ${JSON.stringify(write.channel)} is full.`);
}

/**
 * The state of a channel that cannot drop entries after a write, because several writes of one node must fit together.
 */
function stateAfter(run: Run, { channel, reducer, value }: ChannelWrite, state: unknown): unknown {
  const declared = declaredChannel(run, channel);
  if (!declared?.maxSize || isListReducer(declared.reducer)) return state;
  return reduceWrite(copied(state), { reducer: declared.reducer ?? reducer, value, now: 0 }, {});
}

function permanent(code: string, message: string, details?: JsonObject): RunError {
  return { code, message, retryable: false, ...(details ? { details } : {}) };
}

function accessDenied(channel: string, node: { id: string; typeId: string }): RunError {
  const requestedBy = { nodeId: node.id, typeId: node.typeId };
  return permanent('channel_access_denied', `The node may not write to channel ${JSON.stringify(channel)}.`, {
    channel,
    requestedBy,
    allowed: 'writers',
  });
}

function changeVariable(run: Run, nodeId: string, name: string, value: unknown): NewEvent[] {
  const previous = run.variables[name];
  if (deepEqual(previous, value)) return [];
  const before = previous === undefined ? {} : { previous };
  return [{ type: 'variable.changed', nodeId, payload: { name, ...before, next: value, nodeId } }];
}

/** The id of a node's artifact, unique within the run; it stays the same across versions. */
export function artifactIdOf({ index }: PlannedNode): string {
  return `art-${index}`;
}

/** The outputs of a node that declares an artifact type become a new version of its artifact. */
function createArtifact(run: Run, nodeId: string): NewEvent[] {
  const planned = run.plan.node(nodeId)!;
  const { node } = planned;
  if (!node.artifactType) return [];
  const payload = {
    artifactId: artifactIdOf(planned),
    artifactType: node.artifactType,
    nodeId,
    version: String(run.nodes[planned.index]!.visit + 1),
  };
  return [{ type: 'artifact.created', nodeId, payload }];
}

/** The event of a channel write; on a channel with a TTL, the entry carries the time of writing. */
function writeChannel(run: Run, nodeId: string, write: ChannelWrite, now: number): NewEvent {
  const declared = declaredChannel(run, write.channel);
  const reducer = declared?.reducer ?? write.reducer;
  const ttlMs = takesTtl(reducer) ? (declared ?? write).ttlMs : undefined;
  return {
    type: 'channel.written',
    nodeId,
    payload: {
      channel: write.channel,
      value: ttlMs ? { value: write.value, _ts: now } : write.value,
      reducer,
      writtenAt: new Date(now).toISOString(),
      nodeId,
      ...(declared ? { schemaVersion: declared.schemaVersion ?? 1 } : {}),
    },
  };
}

/** The event of a failed attempt: a retry with exponential backoff and jitter, or `node.failed` if no retry is left. */
export function failAttempt(run: Run, nodeId: string, error: RunError): NewEvent {
  const planned = run.plan.node(nodeId)!;
  const { attempt, failures } = run.nodes[planned.index]!;
  const isLast = error.retryable === false || failures >= planned.maxRetries || run.failure !== undefined;
  if (isLast) return { type: 'node.failed', nodeId, payload: { nodeId, error, attempts: failures + 1 } };
  const ceiling = Math.min(planned.retryDelayMs * 2 ** failures, RETRY_DELAY_MAX_MS);
  const delayMs = Math.round(ceiling * seededRandom(`${seedOf(run.facts)}:${nodeId}:${attempt}`));
  return { type: 'node.retried', nodeId, payload: { nodeId, attempt: attempt + 1, delayMs, lastError: error } };
}

/** A replay uses the seed of its source and so waits as long. */
function seedOf({ runId, fork }: RunFacts): string {
  return fork?.mode === 'replay' ? fork.seed : runId;
}

/** A pseudo-random number in [0, 1) derived from a seed, so that a replay computes the same backoff. */
function seededRandom(seed: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < seed.length; index++) hash = Math.imul(hash ^ seed.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39);
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32;
}
