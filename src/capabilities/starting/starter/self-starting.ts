import type { Plan } from '../../../engine/definition/plan.ts';
import { maskMembers } from '../../../engine/masking/mask.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import type { Owner } from '../../../protocol/running/events.ts';
import { type CreatedRun, createRun } from '../../../runtime/creation.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Statement, Unit } from '../../../store/sql.ts';
import type { Store } from '../../../store/store.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactValue } from '../../../system/redaction.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';

/** What schedules, heartbeats and commitments have in common: runs begin by themselves, in somebody's name. */

/** Who writes such a thing down, whether by a request of theirs or by something that was decided for them. */
export type Author = Pick<Caller, 'subject'>;

/** What changes it, and starts its runs, where that is not a person. */
export interface BelongsTo {
  readonly kind: string;
  readonly id: string;
}

export function ownerText({ kind, id }: BelongsTo): string {
  return `${kind}:${id}`;
}

export interface OwnerColumn {
  readonly belongs_to: string | null;
}

/** Who starts the runs of a thing that belongs to something. */
export function starterOf<S>(starters: ReadonlyMap<string, S>, { belongs_to }: OwnerColumn): S | undefined {
  const [kind = ''] = belongs_to?.split(':', 1) ?? [];
  return starters.get(kind);
}

/** A thing that people may change: what belongs to something is changed there. */
export async function readFree<R extends OwnerColumn>(
  store: Store,
  what: string,
  statement: Statement,
  missing: Refusal = NOT_FOUND,
): Promise<R | Refusal> {
  const [row] = await store.read<R>(statement);
  if (!row) return missing;
  const { belongs_to: belongsTo } = row;
  if (belongsTo === null) return row;
  return refuse('conflict', `The ${what} belongs to ${belongsTo}. Change it there.`, { belongsTo });
}

const TRIES_MAX = 5;

/** Starts over with what is there now when somebody else, or its own time, has changed it in between. */
export async function changeOf<R, T>(
  what: string,
  read: () => Promise<R | Refusal>,
  change: (known: R) => Promise<T | Refusal | undefined>,
): Promise<T | Refusal> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const known = await read();
    if (isRefusal(known)) return known;
    const changed = await change(known);
    if (changed) return changed;
  }
  return refuse('conflict', `The ${what} is being changed by others. Try again.`);
}

/** A run that is to begin, and what else is to happen with its birth. */
export interface Start {
  readonly created: CreatedRun;
  readonly also?: Unit;
}

/** In whose name runs happen, as a row has it. */
export interface SubjectColumns {
  readonly tenant: string;
  readonly tenant_name: string;
  readonly workspace: string | null;
  readonly principal: string;
  readonly issuer: string;
  readonly lane: string;
}

export const SUBJECT_COLUMNS = [
  'tenant',
  'tenant_name',
  'workspace',
  'principal',
  'issuer',
  'lane',
] as const satisfies readonly (keyof SubjectColumns)[];

export function subjectOf(row: SubjectColumns): Subject {
  const { tenant, tenant_name: tenantName, workspace, principal, issuer, lane } = row;
  return { tenant, tenantName, workspace: workspace ?? undefined, principal, issuer, lane };
}

/** Whose it is, as callers see it. */
export function ownerFrom({ tenant_name: tenant, workspace, principal }: SubjectColumns): Owner {
  return { tenant, ...(workspace === null ? {} : { workspace }), principal };
}

export function timeText(at: number): string {
  return new Date(at).toISOString();
}

/** Undefined for a time that there is not, or not yet. */
export function timeIfAny(at: number | null): string | undefined {
  return at === null ? undefined : timeText(at);
}

export function subjectColumns({ tenant, tenantName, workspace, principal, issuer, lane }: Subject): SubjectColumns {
  return { tenant, tenant_name: tenantName, workspace: workspace ?? null, principal, issuer, lane };
}

/** What runs are given, and what of it is shown; null where nothing was said. */
export interface InputColumns {
  readonly inputs: string | null;
  readonly shown_inputs: string | null;
}

export const INPUT_COLUMNS = ['inputs', 'shown_inputs'] as const satisfies readonly (keyof InputColumns)[];

/** What a thing that is known already says of its runs. */
export type KnownInputs = InputColumns & { readonly workflow_id: string | null };

export interface PlainRun {
  readonly subject: Subject;
  readonly workflowId: string;
  readonly inputs: string | null;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
}

/** Checks what runs are to be given, and begins them when their time has come. */
export class RunStarter {
  readonly #runtime: Runtime;
  readonly #runs: Pick<Runs, 'check'>;

  constructor(runtime: Runtime, runs: Pick<Runs, 'check'>) {
    this.#runtime = runtime;
    this.#runs = runs;
  }

  /** Inputs that the workflow would take now. Sent back as they are shown, they stay what they are. */
  async inputsFor(
    subject: Subject,
    { workflowId, inputs }: { readonly workflowId: string; readonly inputs?: JsonObject | undefined },
    known?: KnownInputs,
  ): Promise<InputColumns | Refusal> {
    const workflow = await this.#runtime.plans.current(subject, workflowId);
    if (!workflow) {
      return refuse('validation_error', 'There is no such workflow.', { field: 'workflowId' });
    }
    const shown = inputs && canonicalJson(inputs);
    const isAsShown = shown !== undefined && known?.workflow_id === workflowId && known.shown_inputs === shown;
    return this.inputsOf(workflow.plan, isAsShown ? JSON.parse(known.inputs!) : inputs && redactValue(inputs));
  }

  /** Inputs as they are kept, if a workflow that is so takes them. */
  inputsOf(plan: Plan, inputs: JsonObject | undefined): InputColumns | Refusal {
    const given = inputs ?? {};
    const refusal = this.#runs.check({ isTest: false }, { inputs: given, configurable: {} }, plan);
    if (refusal) return refusal;
    if (inputs === undefined) return { inputs: null, shown_inputs: null };
    const { sensitive, maskingMode } = plan;
    const masked = maskMembers(given, (name) => sensitive.has(name), maskingMode, sha256Hex);
    return { inputs: canonicalJson(given), shown_inputs: canonicalJson(masked) };
  }

  /** The workflow as it is now: it may have changed, or gone, since somebody wrote down that it is to run. */
  async start({ subject, workflowId, inputs: text, tags, metadata }: PlainRun): Promise<Start | Refusal> {
    const workflow = await this.#runtime.plans.current(subject, workflowId);
    if (!workflow) return refuse('not_found', `There is no workflow ${workflowId} any more.`);
    const inputs = text === null ? {} : JSON.parse(text);
    const refusal = this.#runs.check({ isTest: false }, { inputs, configurable: {} }, workflow.plan);
    if (refusal) return refusal;
    const created = createRun(this.#runtime, { subject, workflow, inputs, configurable: {}, tags, metadata, depth: 0 });
    return { created };
  }
}
