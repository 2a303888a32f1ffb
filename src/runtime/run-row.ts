import { type Fork, type Run, type RunFacts, type RunLimits, statusOf } from '../engine/run/run.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import { type Configurable, EVENT_LOG_SCHEMA_VERSION } from '../protocol/running/runs.ts';
import type { RunMove, RunRow } from '../store/log.ts';

/** On whose behalf something happens: the full subject, of which the protocol's first major shows parts. */
export interface Subject {
  /** The storage key of the tenant, made by auth: what every query is bound to. */
  readonly tenant: string;
  /** The tenant as the wire shows it. */
  readonly tenantName: string;
  readonly workspace?: string | undefined;
  readonly principal: string;
  readonly issuer: string;
  readonly lane: string;
}

/** What the host knows of a run beyond what the engine has to. */
export interface RunIdentity {
  readonly subject: Subject;
  readonly workflowOwner: string;
  /** Runs above this one. */
  readonly depth: number;
  /** The first of them, which nobody else started. */
  readonly rootRunId?: string | undefined;
  readonly scopeKey?: string | undefined;
}

/** A run in memory: who it belongs to, and its state. */
export interface HeldRun {
  readonly identity: RunIdentity;
  readonly run: Run;
}

/** The part of a run that is fixed and has no column of its own. */
interface KeptFacts {
  readonly tenantName: string;
  readonly inputs: JsonObject;
  readonly configurable: Configurable;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly limits: RunLimits;
  readonly depth: number;
  readonly rootRunId?: string | undefined;
  readonly scopeKey?: string | undefined;
  readonly fork?: Fork | undefined;
}

export function rowOf({ identity, run }: HeldRun): RunRow {
  const { facts, plan } = run;
  const { subject, depth, rootRunId, scopeKey } = identity;
  const kept: KeptFacts = {
    tenantName: subject.tenantName,
    inputs: facts.inputs,
    configurable: facts.configurable,
    tags: facts.tags,
    metadata: facts.metadata,
    limits: facts.limits,
    depth,
    rootRunId,
    scopeKey,
    fork: facts.fork,
  };
  return {
    run_id: facts.runId,
    tenant: subject.tenant,
    workspace: subject.workspace ?? null,
    principal: subject.principal,
    issuer: subject.issuer,
    lane: subject.lane,
    workflow_owner: identity.workflowOwner,
    workflow_id: facts.workflowId,
    workflow_version: plan.version,
    parent_run_id: facts.parent?.runId ?? null,
    parent_node_id: facts.parent?.nodeId ?? null,
    facts: JSON.stringify(kept),
    engine_version: facts.engineVersion,
    event_log_schema_version: EVENT_LOG_SCHEMA_VERSION,
    created_at: facts.createdAt,
    ...projectionOf(run),
  };
}

type Projection = Pick<RunRow, 'status' | 'sequence' | 'updated_at' | 'ended_at' | 'error_code'>;

function projectionOf(run: Run): Projection {
  return {
    status: statusOf(run),
    sequence: run.sequence,
    updated_at: run.updatedAt,
    ended_at: run.endedAt ?? null,
    error_code: run.error?.code ?? null,
  };
}

/** The move of a run's row that goes with an append: its columns say what the fold says. */
export function moveOf(run: Run, from: number): RunMove {
  const { status, sequence, updated_at, ended_at, error_code } = projectionOf(run);
  return {
    runId: run.facts.runId,
    from,
    to: sequence,
    status,
    updatedAt: updated_at,
    endedAt: ended_at,
    errorCode: error_code,
  };
}

export function identityOf(row: RunRow): RunIdentity {
  const { tenantName, depth, rootRunId, scopeKey } = JSON.parse(row.facts) as KeptFacts;
  const { tenant, workspace, principal, issuer, lane, workflow_owner: workflowOwner } = row;
  return {
    subject: { tenant, tenantName, workspace: workspace ?? undefined, principal, issuer, lane },
    workflowOwner,
    depth,
    rootRunId,
    scopeKey,
  };
}

export function factsOf(row: RunRow): RunFacts {
  const { inputs, configurable, tags, metadata, limits, tenantName, fork } = JSON.parse(row.facts) as KeptFacts;
  return {
    runId: row.run_id,
    workflowId: row.workflow_id,
    owner: {
      tenant: tenantName,
      ...(row.workspace === null ? {} : { workspace: row.workspace }),
      principal: row.principal,
    },
    inputs,
    configurable,
    tags,
    metadata,
    parent: row.parent_run_id === null ? undefined : { runId: row.parent_run_id, nodeId: row.parent_node_id ?? '' },
    createdAt: row.created_at,
    engineVersion: row.engine_version,
    limits,
    fork,
  };
}
