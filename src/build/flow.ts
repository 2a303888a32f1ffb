import type { Static, TObject, TProperties } from 'typebox';
import type { ApprovalConfig } from '../capabilities/people/interrupts/door.ts';
import { defined, type JsonObject } from '../protocol/format/json.ts';
import type { AuthoredWorkflow, PortValue } from '../protocol/running/workflows.ts';
import type { OwnNode, Safety } from './define-node.ts';
import { Step, Transition, Value, type Variable } from './flow-values.ts';
import type { OwnWorkflow } from './own-workflow.ts';
import { ProjectProblem } from './project-problem.ts';
import type { ValueOf, ValueSchema } from './value-schema.ts';

type TypesOf<V extends TProperties> = Static<TObject<V>>;
type Fields = Readonly<Record<string, unknown>>;
type Nothing = Record<never, never>;
/** Members as they are, or as values that the run will have. */
type OrValues<T> = { readonly [K in keyof T]: T[K] | Value<T[K]> };
/** A member that may be left out if every member of it may. */
type Member<Name extends string, T> = Nothing extends T ? { readonly [K in Name]?: T } : { readonly [K in Name]: T };
type InputsOf<I> = I extends ValueSchema ? OrValues<ValueOf<I>> : Fields;
type ConfigOf<C> = C extends ValueSchema ? ValueOf<C> : JsonObject;
/** Outputs without a schema fit everywhere. */
type OutputsOf<O> = O extends ValueSchema ? ValueOf<O> : Record<string, never>;
type Given<T> = Nothing extends T ? [options?: T] : [options: T];

/** The variables of a workflow, as values for its steps. */
export type VariablesOf<V extends TProperties> = {
  readonly [K in keyof V]: Variable<TypesOf<V>[K & keyof TypesOf<V>]>;
};

/** What a step starts after. */
export type After = Step<unknown> | Transition | readonly (Step<unknown> | Transition)[];

/** What every step may say. */
export interface StepSettings
  extends Pick<
    NonNullable<AuthoredWorkflow['nodes'][number]>,
    'name' | 'notes' | 'position' | 'artifactType' | 'outputRole' | 'outputSensitivity' | 'disabled' | 'agent'
  > {
  /** Steps whose outputs it uses need not be named here. */
  readonly after?: After;
  readonly retry?: { readonly maxRetries?: number; readonly delayMs?: number };
  /** The longest that an attempt may take. */
  readonly timeoutMs?: number;
}

type NodeOptions<C, I> = StepSettings & Member<'config', ConfigOf<C>> & Member<'inputs', InputsOf<I>>;
type AnyOptions = StepSettings & { readonly config?: Fields; readonly inputs?: Fields };

/** Variables of a child, from those of the workflow. */
type ChildInputs<V extends TProperties> = {
  readonly [K in keyof TypesOf<V>]?: Variable<TypesOf<V>[K]>;
};

/** What a step that runs another workflow needs. */
export interface SubWorkflowOptions<V extends TProperties, Own extends TProperties> extends StepSettings {
  readonly inputs?: ChildInputs<V>;
  /** Variables of this workflow that are set when the child has ended, from its variables. */
  readonly outputs?: { readonly [K in keyof Own]?: keyof V & string };
  readonly onChildFailure?: 'fail-parent' | 'absorb';
}

/** What a step that runs a workflow for each item of a list needs. */
export interface ForEachOptions<V extends TProperties, Item extends keyof TypesOf<V>> extends StepSettings {
  readonly items: readonly TypesOf<V>[Item][] | Value<readonly TypesOf<V>[Item][]>;
  /** The variable of the child that gets the item. */
  readonly as: Item & string;
  /** The variable of the child that holds its result. */
  readonly result?: keyof V & string;
  readonly inputs?: ChildInputs<V>;
  readonly concurrency?: number;
  readonly onChildFailure?: 'fail-fast' | 'collect';
}

/** What `defineWorkflow` hands to its function: it adds steps, in the order of their columns. */
export interface Flow<V extends TProperties> {
  readonly variables: VariablesOf<V>;
  /** A node of your own. */
  node<S extends Safety, C extends ValueSchema | undefined, I extends ValueSchema | undefined, O>(
    id: string,
    type: OwnNode<S, C, I, O & (ValueSchema | undefined)>,
    ...given: Given<NodeOptions<C, I>>
  ): Step<OutputsOf<O>>;
  /** A node of the host, by its type. */
  node(id: string, typeId: string, options?: AnyOptions): Step<Record<string, never>>;
  /** Asks a person to approve the inputs. */
  gate(
    id: string,
    options: StepSettings & Static<typeof ApprovalConfig> & { readonly inputs?: Fields },
  ): Step<{ action: string; decidedBy: string }>;
  /** Sets a variable. */
  set<T>(id: string, variable: Variable<T>, value: T | Value<T>, settings?: StepSettings): Step<Nothing>;
  /** Runs another workflow and waits for its end. */
  subWorkflow<C extends TProperties>(
    id: string,
    workflow: OwnWorkflow<C>,
    options?: SubWorkflowOptions<C, V>,
  ): Step<{ childRunId: string; childStatus: string }>;
  /** Runs another workflow for each item of a list. */
  forEach<C extends TProperties, Item extends keyof TypesOf<C>>(
    id: string,
    workflow: OwnWorkflow<C>,
    options: ForEachOptions<C, Item>,
  ): Step<{ results: never[]; completed: number; total: number }>;
}

type AuthoredNode = AuthoredWorkflow['nodes'][number];
type AuthoredEdge = NonNullable<AuthoredWorkflow['edges']>[number];

/** Collects the steps of one workflow. */
export class FlowBuilder<V extends TProperties> implements Flow<V> {
  readonly variables: VariablesOf<V>;
  readonly nodes: AuthoredNode[] = [];
  readonly edges: AuthoredEdge[] = [];
  readonly #workflowId: string;

  constructor(workflowId: string, variables: VariablesOf<V>) {
    this.#workflowId = workflowId;
    this.variables = variables;
  }

  // Functions of their own, because workflows take them apart.
  readonly node = <Outputs>(
    id: string,
    type: Pick<OwnNode, 'typeId'> | string,
    options: AnyOptions = {},
  ): Step<Outputs> => {
    return this.#add(id, typeof type === 'string' ? type : type.typeId, options);
  };

  readonly gate = (id: string, given: Parameters<Flow<V>['gate']>[1]): Step<{ action: string; decidedBy: string }> => {
    const {
      name,
      notes,
      position,
      artifactType,
      outputRole,
      outputSensitivity,
      disabled,
      agent,
      after,
      retry,
      inputs,
      ...config
    } = given;
    const shown = { name, notes, position, artifactType, outputRole, outputSensitivity, disabled };
    const settings = { ...defined(shown), ...defined({ agent, after, retry }) };
    return this.#add(id, 'core.approvalGate', { ...settings, ...(inputs ? { inputs } : {}), config });
  };

  readonly set = <T>(
    id: string,
    { name }: Variable<T>,
    value: T | Value<T>,
    settings: StepSettings = {},
  ): Step<Nothing> => {
    return this.#add(id, 'core.setVariable', { ...settings, config: { name }, inputs: { value } });
  };

  readonly subWorkflow = <C extends TProperties>(
    id: string,
    { id: workflowId }: OwnWorkflow<C>,
    { inputs, outputs, onChildFailure, ...settings }: SubWorkflowOptions<C, V> = {},
  ): Step<{ childRunId: string; childStatus: string }> => {
    const mappings = { inputMapping: inputs && namesOf(inputs), outputMapping: outputs, onChildFailure };
    return this.#add(id, 'core.subWorkflow', { ...settings, config: { workflowId, ...defined(mappings) } });
  };

  readonly forEach = <C extends TProperties, Item extends keyof TypesOf<C>>(
    id: string,
    { id: workflowId }: OwnWorkflow<C>,
    { items, as, result, inputs, concurrency, onChildFailure, ...settings }: ForEachOptions<C, Item>,
  ): Step<{ results: never[]; completed: number; total: number }> => {
    const mappings = { resultVariable: result, inputMapping: inputs && namesOf(inputs), concurrency, onChildFailure };
    const config = { workflowId, itemVariable: as, ...defined(mappings) };
    return this.#add(id, 'vendor.capstan.flow.for-each', { ...settings, config, inputs: { array: items } });
  };

  #add<Outputs>(id: string, typeId: string, options: AnyOptions): Step<Outputs> {
    if (this.nodes.some((node) => node.id === id)) {
      throw new ProjectProblem(`The workflow ${this.#workflowId} has two steps called ${JSON.stringify(id)}.`);
    }
    const { after = [], retry, timeoutMs, inputs = {}, config, ...rest } = options;
    const ports = Object.entries(inputs).filter(([, value]) => value !== undefined);
    const sources = Object.fromEntries(ports.map(([port, value]) => [port, sourceOf(value)]));
    const settings = defined({ retry, timeoutMs });
    this.#connect(id, [after].flat(), Object.values(sources));
    this.nodes.push({
      id,
      typeId,
      ...rest,
      ...(config ? { config: { ...config } } : {}),
      ...(ports.length > 0 ? { inputs: sources } : {}),
      ...(Object.keys(settings).length > 0 ? { settings } : {}),
    });
    return new Step(id);
  }

  /** A step whose outputs are used comes first, though `after` does not name it. */
  #connect(targetNodeId: string, after: readonly (Step<unknown> | Transition)[], sources: readonly PortValue[]): void {
    const transitions = after.map((each) => (each instanceof Transition ? each : new Transition(each, {})));
    const earlier = this.#upTo(transitions.map(({ from }) => from.id));
    const used = new Set(sources.flatMap((source) => this.#stepsIn(source)).filter((id) => !earlier.has(id)));
    const isConditional = transitions.some(({ condition, triggerRule }) => condition || triggerRule);
    if (isConditional && used.size > 0) {
      const names = [...used].join(', ');
      // An edge that always holds would start the step although the condition is false.
      throw new ProjectProblem(
        `The step ${targetNodeId} of ${this.#workflowId} uses ${names}, and starts under a condition of another step. Place that step after ${names}.`,
      );
    }
    for (const { from, condition, triggerRule } of transitions) {
      this.edges.push({ sourceNodeId: from.id, targetNodeId, ...defined({ condition, triggerRule }) });
    }
    for (const sourceNodeId of used) this.edges.push({ sourceNodeId, targetNodeId });
  }

  /** Steps and everything before them. */
  #upTo(ids: readonly string[]): ReadonlySet<string> {
    const found = new Set(ids);
    // Edges lead only to steps that were added later, so one pass from the last edge to the first finds all.
    for (const { sourceNodeId, targetNodeId } of this.edges.toReversed()) {
      if (found.has(targetNodeId)) found.add(sourceNodeId);
    }
    return found;
  }

  /** The steps that a value comes from; expressions name them as `nodes.id`. */
  #stepsIn(source: PortValue): readonly string[] {
    if (source.type === 'connection') return [source.nodeId];
    if (source.type !== 'expression') return [];
    const named = [...source.expression.matchAll(/\bnodes(?:\.([A-Za-z_]\w*)|\["([^"]+)"\])/g)].map(
      ([, plain, quoted]) => plain ?? quoted,
    );
    return this.nodes.map(({ id }) => id).filter((id) => named.includes(id));
  }
}

function sourceOf(value: unknown): PortValue {
  return value instanceof Value ? value.source : { type: 'static', value };
}

function namesOf(inputs: Fields): JsonObject {
  const given = Object.entries(defined(inputs)) as [string, Variable<unknown>][];
  return Object.fromEntries(given.map(([name, variable]) => [name, variable.name]));
}
