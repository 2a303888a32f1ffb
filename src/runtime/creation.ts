import { emptyRun, type Fork, type RunFacts, type RunLimits } from '../engine/run/run.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import { type Configurable, ENGINE_VERSION } from '../protocol/running/runs.ts';
import { sha256Hex } from '../system/digest.ts';
import { timeOf } from '../system/ids.ts';
import { redactValue } from '../system/redaction.ts';
import { recordNow } from './append.ts';
import type { PinnedPlan } from './plans.ts';
import type { Recorded } from './recording.ts';
import type { HeldRun, Subject } from './run-row.ts';
import type { Runtime } from './runtime.ts';

export const RUN_PREFIX = 'run-';

export interface NewRun {
  readonly subject: Subject;
  readonly workflow: PinnedPlan;
  readonly inputs: JsonObject;
  readonly configurable: Configurable;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  /** How it was asked for, where somebody asked: over the protocol's own routes, unless this says otherwise. */
  readonly transport?: 'rest' | 'mcp' | undefined;
  readonly parent?: { readonly runId: string; readonly nodeId: string };
  readonly depth: number;
  readonly rootRunId?: string | undefined;
  readonly scopeKey?: string | undefined;
  readonly engineVersion?: number | undefined;
  readonly fork?: Fork | undefined;
}

export interface CreatedRun {
  readonly held: HeldRun;
  readonly recorded: readonly Recorded[];
  /** The events are another run's history. */
  readonly isInherited?: boolean;
}

/** A run in memory, before its first event. */
export function emptyHeld(runtime: Runtime, request: NewRun): HeldRun {
  const { subject, workflow, depth, rootRunId, scopeKey } = request;
  return {
    identity: { subject, workflowOwner: workflow.owner, depth, rootRunId, scopeKey },
    run: emptyRun(workflow.plan, factsFor(runtime, request)),
  };
}

/** A run in memory, with its first event. Nothing has happened yet: that takes a commit. */
export function createRun(runtime: Runtime, request: NewRun): CreatedRun {
  const held = emptyHeld(runtime, request);
  const { facts } = held.run;
  const started = recordNow(
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
    },
    facts.createdAt,
    sha256Hex,
  );
  return { held, recorded: [started] };
}

function factsFor(runtime: Runtime, request: NewRun): RunFacts {
  const { subject, workflow, configurable, parent } = request;
  const runId = runtime.ids.next(RUN_PREFIX);
  return {
    runId,
    workflowId: workflow.plan.definition.id,
    owner: {
      tenant: subject.tenantName,
      ...(subject.workspace ? { workspace: subject.workspace } : {}),
      principal: subject.principal,
    },
    inputs: redactValue(request.inputs),
    configurable: redactConfigurable(configurable),
    tags: request.tags && redactValue(request.tags),
    metadata: request.metadata && redactValue(request.metadata),
    parent,
    // Whoever searches by time searches by id.
    createdAt: timeOf(runId, RUN_PREFIX),
    engineVersion: request.engineVersion ?? ENGINE_VERSION,
    limits: effectiveLimits(runtime.limits, request),
    fork: request.fork,
  };
}

/** A reference to a credential is no secret, though it may look like one: without it the run could not resolve any. */
function redactConfigurable(configurable: Configurable): Configurable {
  const redacted = redactValue(configurable);
  const credentialRef = configurable.ai?.credentialRef;
  return credentialRef === undefined ? redacted : { ...redacted, ai: { ...redacted.ai, credentialRef } };
}

/** What the caller and the workflow ask for, never more than the host allows. */
function effectiveLimits(ceilings: RunLimits, { configurable, workflow }: NewRun): RunLimits {
  const { recursionLimit = Number.POSITIVE_INFINITY, runTimeoutMs = Number.POSITIVE_INFINITY } = configurable;
  const timeout = workflow.plan.definition.settings.timeout || Number.POSITIVE_INFINITY;
  return {
    maxNodeExecutions: Math.min(recursionLimit, ceilings.maxNodeExecutions),
    maxRunDurationMs: Math.min(runTimeoutMs, timeout, ceilings.maxRunDurationMs),
  };
}
