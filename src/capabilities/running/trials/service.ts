import { makePlan } from '../../../engine/definition/plan.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { canonicalJson } from '../../../protocol/format/json.ts';
import { TRIAL_TAG, type TrialRequest } from '../../../protocol/running/trials.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { and, type Change, changeOf, withResult } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import { insertDefinition, runsOwner } from '../../../store/definitions.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../runs/door.ts';
import type { Workflows } from '../workflows/door.ts';

/** What trials need of other capabilities. */
interface TrialNeeds {
  readonly workflows: Pick<Workflows, 'validate'>;
  readonly runs: Pick<Runs, 'createPinned'>;
}

const ID_DIGITS = 16;
const VERSION = 1;
/** The only node of a trial. */
const NODE_ID = 'node';

/**
 * Runs single nodes. A trial is a run like any other, of a definition that is stored for it and is no workflow: nothing
 * lists it and nothing else can start it. It has an owner of its own, because it is deleted with the run. The id follows
 * from the content, so the same trial is told as the same.
 */
export class TrialService {
  readonly #runtime: Pick<Runtime, 'clock' | 'ids'>;
  readonly #needs: TrialNeeds;

  constructor(runtime: Pick<Runtime, 'clock' | 'ids'>, needs: TrialNeeds) {
    this.#runtime = runtime;
    this.#needs = needs;
  }

  async start(caller: Caller, request: TrialRequest): Promise<Change<StartedRun> | Refusal> {
    const definition = definitionOf(request);
    const warnings = await this.#needs.workflows.validate(caller, definition);
    if (isRefusal(warnings)) return warnings;
    const body = JSON.stringify(definition);
    const owner = runsOwner(caller.subject.tenant, 'trial', this.#runtime.ids.next('trial-'));
    const workflow = { owner, plan: makePlan(definition, VERSION) };
    const inputs = Object.fromEntries(portsOf(request).map(({ variable, value }) => [variable, value]));
    const start = await this.#needs.runs.createPinned(caller, workflow, {
      inputs,
      configurable: {},
      tags: [TRIAL_TAG],
    });
    if (isRefusal(start)) return start;
    const row = { owner, workflow_id: definition.id, version: VERSION, digest: sha256Hex(body), body };
    const stored = changeOf(undefined, [insertDefinition({ ...row, created_at: this.#runtime.clock.now() })]);
    return withResult(and(stored, start), () => start.result);
  }
}

/** An input port with the variable that it reads: values belong to the run, which expires, and not to the definition. */
interface TrialPort {
  readonly port: string;
  readonly variable: string;
  readonly value: unknown;
}

function portsOf({ inputs = {} }: TrialRequest): readonly TrialPort[] {
  return Object.entries(inputs).map(([port, value], index) => ({ port, variable: `input${index + 1}`, value }));
}

function definitionOf(request: TrialRequest): WorkflowDefinition {
  const { typeId, config = {} } = request;
  const ports = portsOf(request);
  const inputs = ports.map(
    ({ port, variable }) => [port, { type: 'variable' as const, variableName: variable }] as const,
  );
  const node = {
    id: NODE_ID,
    typeId,
    name: typeId,
    position: { x: 0, y: 0 },
    config,
    inputs: Object.fromEntries(inputs),
  };
  const variables = ports.map(({ variable, value }) => ({ name: variable, type: typeOf(value) }));
  const digest = sha256Hex(canonicalJson([node, variables])).slice(0, ID_DIGITS);
  return {
    id: `capstan-trial-${digest}`,
    name: `Trial of ${typeId}`,
    version: '1.0.0',
    nodes: [node],
    edges: [],
    triggers: [{ id: 'manual', type: 'manual' }],
    variables,
    metadata: {},
    settings: {},
  };
}

function typeOf(value: unknown): 'string' | 'number' | 'boolean' | 'array' | 'object' {
  if (Array.isArray(value)) return 'array';
  const type = typeof value;
  return type === 'string' || type === 'number' || type === 'boolean' ? type : 'object';
}
