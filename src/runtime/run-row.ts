import { type Fork, type Run, type RunFacts, type RunLimits, statusOf } from '../engine/run/run.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { TraceContext } from '../protocol/format/trace.ts';
import { type Configurable, EVENT_LOG_SCHEMA_VERSION } from '../protocol/running/runs.ts';
import type { ForkRow, RunAdvance, RunRow } from '../store/log.ts';
import { logSeal } from '../store/log-digest.ts';

/** The authenticated principal on whose behalf a run executes; version 1 of the protocol shows only parts of it. */
export interface Subject {
  /** The storage key of the tenant, derived by authentication: every query is restricted to it. */
  readonly tenant: string;
  /** The name of the tenant in the API. */
  readonly tenantName: string;
  readonly workspace?: string | undefined;
  readonly principal: string;
  /** The person that the key names, if it names one; known while a request is handled. */
  readonly person?: string | undefined;
  readonly issuer: string;
  /** How the principal was authenticated, such as an API key or a token. */
  readonly lane: string;
}

/** The facts about a run that the host needs and the engine does not. */
interface RunIdentity {
  readonly subject: Subject;
  readonly workflowOwner: string;
  /** Number of ancestors. */
  readonly depth: number;
  /** The topmost ancestor; undefined for a run without a parent. */
  readonly rootRunId?: string | undefined;
  /** Hash of the tenant and the scope that the run occupies until it ends. */
  readonly scopeKey?: string | undefined;
}

/** A folded run in memory, with its identity. One owner at a time: applying an event changes `run` in place. */
export interface HeldRun {
  readonly identity: RunIdentity;
  readonly run: Run;
}

/** The immutable facts of a run that have no column of their own: the JSON in the column `facts`. */
interface StoredFacts {
  readonly tenantName: string;
  readonly initiators?: readonly string[] | undefined;
  readonly inputs: JsonObject;
  readonly configurable: Configurable;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly limits: RunLimits;
  readonly sensitiveInputs?: readonly string[] | undefined;
  readonly depth: number;
  readonly rootRunId?: string | undefined;
  readonly scopeKey?: string | undefined;
  readonly fork?: Fork | undefined;
  readonly trace?: TraceContext | undefined;
}

/** The row of a new run. */
export function rowOf({ identity, run }: HeldRun): RunRow {
  const { facts, plan } = run;
  const { subject, depth, rootRunId, scopeKey } = identity;
  const stored: StoredFacts = {
    tenantName: subject.tenantName,
    initiators: facts.initiators,
    inputs: facts.inputs,
    configurable: facts.configurable,
    tags: facts.tags,
    metadata: facts.metadata,
    limits: facts.limits,
    sensitiveInputs: facts.sensitiveInputs,
    depth,
    rootRunId,
    scopeKey,
    fork: facts.fork,
    trace: facts.trace,
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
    facts: JSON.stringify(stored),
    engine_version: facts.engineVersion,
    event_log_schema_version: EVENT_LOG_SCHEMA_VERSION,
    created_at: facts.createdAt,
    ...projectionOf(run),
  };
}

/** What lists say about a new run that is a fork. */
export function forkRowOf(runId: string, { sourceRunId, mode, preview }: Fork): ForkRow {
  return { run_id: runId, source_run_id: sourceRunId, mode, is_preview: preview === undefined ? 0 : 1 };
}

type Projection = Pick<RunRow, 'status' | 'sequence' | 'updated_at' | 'ended_at' | 'error_code' | 'log_seal'>;

function projectionOf(run: Run): Projection {
  return {
    status: statusOf(run),
    sequence: run.sequence,
    updated_at: run.updatedAt,
    ended_at: run.endedAt ?? null,
    error_code: run.error?.code ?? null,
    log_seal: logSeal(run.sequence, run.logDigest),
  };
}

/** The update of a run's row that is committed with an append, so that its columns always equal the fold. */
export function moveOf(run: Run, from: number): RunAdvance {
  const { status, sequence, updated_at, ended_at, error_code, log_seal } = projectionOf(run);
  return {
    runId: run.facts.runId,
    from,
    to: sequence,
    status,
    updatedAt: updated_at,
    endedAt: ended_at,
    errorCode: error_code,
    logSeal: log_seal,
  };
}

/** Reads the identity of a run from its row. */
export function identityOf(row: RunRow): RunIdentity {
  const { tenantName, depth, rootRunId, scopeKey } = JSON.parse(row.facts) as StoredFacts;
  const { tenant, workspace, principal, issuer, lane, workflow_owner: workflowOwner } = row;
  return {
    subject: { tenant, tenantName, workspace: workspace ?? undefined, principal, issuer, lane },
    workflowOwner,
    depth,
    rootRunId,
    scopeKey,
  };
}

/** Reads the facts from a row that the engine folds the run with. */
export function factsOf(row: RunRow): RunFacts {
  const { inputs, configurable, tags, metadata, limits, sensitiveInputs, tenantName, fork, trace, initiators } =
    JSON.parse(row.facts) as StoredFacts;
  return {
    runId: row.run_id,
    workflowId: row.workflow_id,
    owner: {
      tenant: tenantName,
      ...(row.workspace === null ? {} : { workspace: row.workspace }),
      principal: row.principal,
    },
    initiators,
    inputs,
    configurable,
    tags,
    metadata,
    parent: row.parent_run_id === null ? undefined : { runId: row.parent_run_id, nodeId: row.parent_node_id ?? '' },
    createdAt: row.created_at,
    engineVersion: row.engine_version,
    limits,
    sensitiveInputs,
    fork,
    trace,
  };
}
