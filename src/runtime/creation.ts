import { emptyRun, type Fork, type RunFacts, type RunLimits } from '../engine/run/run.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { TraceContext } from '../protocol/format/trace.ts';
import { type Configurable, ENGINE_VERSION } from '../protocol/running/runs.ts';
import { sha256Hex } from '../system/digest.ts';
import { timeOf } from '../system/ids.ts';
import { redactValue } from '../system/redaction.ts';
import { recordAndApply } from './append.ts';
import type { PinnedPlan } from './plans.ts';
import type { Recorded } from './recording.ts';
import type { HeldRun, Subject } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** Prefix of run ids. */
export const RUN_PREFIX = 'run-';

/** What is needed to create a run. */
export interface NewRun {
  readonly subject: Subject;
  /** Who started it, if that is not the subject alone. */
  readonly initiators?: readonly string[] | undefined;
  readonly workflow: PinnedPlan;
  readonly inputs: JsonObject;
  /** Names of inputs that hold sensitive values of the parent. */
  readonly sensitiveInputs?: readonly string[] | undefined;
  readonly configurable: Configurable;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  /** The API that the request came through; `rest` by default. Child runs have none. */
  readonly transport?: 'rest' | 'mcp' | undefined;
  readonly parent?: { readonly runId: string; readonly nodeId: string };
  /** The event, in the log of the parent, that led to this run. */
  readonly causationId?: string | undefined;
  /** Number of ancestors. */
  readonly depth: number;
  /** The topmost ancestor; undefined for a run without a parent. */
  readonly rootRunId?: string | undefined;
  readonly scopeKey?: string | undefined;
  readonly engineVersion?: number | undefined;
  readonly fork?: Fork | undefined;
  readonly trace?: TraceContext | undefined;
}

/** A run with its first events, not committed yet. */
export interface CreatedRun {
  readonly held: HeldRun;
  readonly recorded: readonly Recorded[];
  /** The events are copied from the run that this one forks. */
  readonly isInherited?: boolean;
}

/** Creates a run in memory that has no events yet: the first ones are recorded by the caller. */
export function emptyHeldRun(runtime: Runtime, request: NewRun): HeldRun {
  const { subject, workflow, depth, rootRunId, scopeKey } = request;
  return {
    identity: { subject, workflowOwner: workflow.owner, depth, rootRunId, scopeKey },
    run: emptyRun(workflow.plan, factsFor(runtime, request)),
  };
}

/** Creates a run in memory with its `run.started` event; the run exists once that is committed. */
export function createRun(runtime: Runtime, request: NewRun): CreatedRun {
  const held = emptyHeldRun(runtime, request);
  const { facts } = held.run;
  const started = recordAndApply(
    held,
    {
      type: 'run.started',
      payload: {
        workflowId: facts.workflowId,
        ...(facts.parent ? {} : { transport: request.transport ?? 'rest' }),
        engineVersion: String(facts.engineVersion),
        owner: facts.owner,
        ...(facts.tags ? { tags: [...facts.tags] } : {}),
      },
      ...(request.causationId === undefined ? {} : { causationId: request.causationId }),
    },
    facts.createdAt,
    sha256Hex,
  );
  return { held, recorded: [started] };
}

function factsFor(runtime: Runtime, request: NewRun): RunFacts {
  const { subject, workflow, parent } = request;
  const runId = runtime.ids.next(RUN_PREFIX);
  return {
    runId,
    workflowId: workflow.plan.definition.id,
    owner: {
      tenant: subject.tenantName,
      ...(subject.workspace ? { workspace: subject.workspace } : {}),
      principal: subject.principal,
    },
    initiators: request.initiators ?? initiatorsOf(subject),
    ...storedGivens(request),
    tags: request.tags && redactValue(request.tags),
    metadata: request.metadata && redactValue(request.metadata),
    parent,
    // Equal to the time in the id, because searches by time compare ids.
    createdAt: timeOf(runId, RUN_PREFIX),
    engineVersion: request.engineVersion ?? ENGINE_VERSION,
    limits: effectiveLimits(runtime.limits, request),
    sensitiveInputs: request.sensitiveInputs,
    fork: request.fork,
    trace: request.trace,
  };
}

/** The names of whoever starts a run: the principal, and the person that its key names. */
export function initiatorsOf({ principal, person }: Subject): string[] | undefined {
  return person === undefined ? undefined : [principal, person];
}

/** The inputs and options of a run as they are stored: without secrets. */
export function storedGivens({
  inputs,
  configurable,
}: Pick<NewRun, 'inputs' | 'configurable'>): Pick<NewRun, 'inputs' | 'configurable'> {
  return { inputs: redactValue(inputs), configurable: redactConfigurable(configurable) };
}

/** Redacts everything but the credential reference, which may look like a secret and is needed to resolve one. */
function redactConfigurable(configurable: Configurable): Configurable {
  const redacted = redactValue(configurable);
  const credentialRef = configurable.ai?.credentialRef;
  return credentialRef === undefined ? redacted : { ...redacted, ai: { ...redacted.ai, credentialRef } };
}

/** The smallest of the limits of the caller, the workflow and the host. */
function effectiveLimits(ceilings: RunLimits, { configurable, workflow }: NewRun): RunLimits {
  const { recursionLimit = Number.POSITIVE_INFINITY, runTimeoutMs = Number.POSITIVE_INFINITY } = configurable;
  const timeout = workflow.plan.definition.settings.timeout || Number.POSITIVE_INFINITY;
  return {
    maxNodeExecutions: Math.min(recursionLimit, ceilings.maxNodeExecutions),
    maxRunDurationMs: Math.min(runTimeoutMs, timeout, ceilings.maxRunDurationMs),
  };
}
