import type { Plan } from '../../../engine/definition/plan.ts';
import { maskMembers } from '../../../engine/masking/mask.ts';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactValue } from '../../../system/redaction.ts';
import { createHostRun } from '../../host-run.ts';
import type { Runs } from '../../running/runs/door.ts';
import type { RunStart } from './door.ts';
import type { InputColumns } from './records.ts';
import { invalidField } from './rules.ts';

/** A run that a starter without an owner starts. */
export interface PlannedRun {
  readonly workflowId: string;
  readonly inputs: JsonObject;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
  /** Who started it, if that is not the subject alone. */
  readonly initiators?: readonly string[];
}

/** The inputs that a starter has already, with the workflow that they are for. */
type KnownInputs = InputColumns & { readonly workflow_id: string | null };

const NO_INPUTS: InputColumns = { inputs: null, shown_inputs: null };

/** Checks the inputs of future runs when a starter is written, and creates the runs when they are due. */
export class RunCreation {
  readonly #runtime: Runtime;
  readonly #runs: Pick<Runs, 'check'>;

  constructor(runtime: Runtime, runs: Pick<Runs, 'check'>) {
    this.#runtime = runtime;
    this.#runs = runs;
  }

  /**
   * The columns for inputs that the workflow accepts now. A request that repeats the inputs as they are shown, sensitive
   * members masked, keeps the stored ones.
   */
  async inputColumns(
    subject: Subject,
    { workflowId, inputs }: { readonly workflowId?: string | undefined; readonly inputs?: JsonObject | undefined },
    known?: KnownInputs,
  ): Promise<InputColumns | Refusal> {
    if (workflowId === undefined) return NO_INPUTS;
    const workflow = await this.#runtime.plans.current(subject, workflowId);
    if (!workflow) return invalidField('workflowId', 'There is no such workflow.');
    const shown = inputs && canonicalJson(inputs);
    const isAsShown = shown !== undefined && known?.workflow_id === workflowId && known.shown_inputs === shown;
    return this.columnsFor(workflow.plan, isAsShown ? JSON.parse(known.inputs!) : inputs && redactValue(inputs));
  }

  /** The columns for inputs of a workflow whose plan is known. */
  async columnsFor(plan: Plan, inputs: JsonObject | undefined): Promise<InputColumns | Refusal> {
    const refusal = await this.#runs.check({ isTest: false }, { inputs: inputs ?? {}, configurable: {} }, plan);
    if (refusal) return refusal;
    if (inputs === undefined) return NO_INPUTS;
    const { sensitive, maskingMode } = plan;
    const masked = maskMembers(inputs, (name) => sensitive.has(name), maskingMode, sha256Hex);
    return { inputs: canonicalJson(inputs), shown_inputs: canonicalJson(masked) };
  }

  /** Creates a run of the workflow's current version, which may have changed or gone since the starter was written. */
  async create(subject: Subject, planned: PlannedRun): Promise<RunStart | Refusal> {
    const { workflowId } = planned;
    const workflow = await this.#runtime.plans.current(subject, workflowId);
    if (!workflow) return refuse('not_found', `The workflow ${workflowId} no longer exists.`);
    const request = { ...planned, subject, workflow, configurable: {} };
    const created = await createHostRun(this.#runtime, this.#runs, request);
    return isRefusal(created) ? created : { created };
  }
}

/** The inputs that a row stores. */
export function inputsOf({ inputs }: InputColumns): JsonObject {
  return inputs === null ? {} : (JSON.parse(inputs) as JsonObject);
}
