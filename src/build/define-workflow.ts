import { IsOptional, type TProperties, type TSchema } from 'typebox';
import { completeWorkflow } from '../engine/definition/complete.ts';
import { own } from '../protocol/format/json.ts';
import type { AuthoredWorkflow, WorkflowVariable } from '../protocol/running/workflows.ts';
import { callSiteOf } from './call-site.ts';
import { type Flow, FlowBuilder, type VariablesOf } from './flow.ts';
import { Variable } from './flow-values.ts';
import { type OwnWorkflow, placedAt } from './own-workflow.ts';

/** What a workflow in code says about itself. */
export interface WorkflowHead<V extends TProperties>
  extends Omit<AuthoredWorkflow, '$schema' | 'nodes' | 'edges' | 'version' | 'variables'> {
  /** `1.0` by default. */
  readonly version?: string;
  /**
   * TypeBox schemas by name. A variable is required unless it is `Type.Optional` or has a `default`; `sensitive: true`
   * masks it. The protocol keeps its type, description and default; a node has to check what else the schema says.
   */
  readonly variables?: V;
}

/**
 * Defines a workflow in code. `build` is called once and adds the steps; what it makes is the definition of the
 * protocol, the same every time, with edges and positions filled in.
 */
export function defineWorkflow<V extends TProperties = Record<never, never>>(
  { variables, version = '1.0', ...head }: WorkflowHead<V>,
  build: (flow: Flow<V>) => void,
): OwnWorkflow<V> {
  const declared = Object.entries<TSchema>(variables ?? {});
  const values = Object.fromEntries(declared.map(([name, schema]) => [name, new Variable(name, isOptional(schema))]));
  // The entries are those that the type is made of.
  const flow = new FlowBuilder<V>(head.id, values as VariablesOf<V>);
  build(flow);
  const definition = completeWorkflow({
    ...head,
    version,
    nodes: flow.nodes,
    edges: flow.edges,
    variables: declared.map(([name, schema]) => variableOf(name, schema)),
  });
  return placedAt(definition, callSiteOf(defineWorkflow));
}

function isOptional(schema: TSchema): boolean {
  return IsOptional(schema) && !('default' in schema);
}

const TYPES: Readonly<Record<string, WorkflowVariable['type']>> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  array: 'array',
  object: 'object',
};

/** The type of the protocol for a schema; that of a choice is the one that all its values share. */
function typeOf(name: string, schema: Readonly<Record<string, unknown>>): WorkflowVariable['type'] {
  const { type, anyOf, const: only, enum: values = only === undefined ? [] : [only] } = schema;
  const known = own(TYPES, String(type ?? ''));
  if (known) return known;
  const choices = [
    ...((anyOf ?? []) as Readonly<Record<string, unknown>>[]).map((choice) => typeOf(name, choice)),
    ...(values as unknown[]).flatMap((value) => own(TYPES, typeof value) ?? []),
  ];
  const [first, ...others] = new Set(choices);
  if (first !== undefined && others.length === 0) return first;
  throw new Error(`The variable ${JSON.stringify(name)} needs a schema of one type, such as Type.String().`);
}

function variableOf(name: string, schema: TSchema): WorkflowVariable {
  const { description, default: defaultValue, sensitive } = schema as Readonly<Record<string, unknown>>;
  return {
    name,
    type: typeOf(name, schema as Readonly<Record<string, unknown>>),
    ...(typeof description === 'string' ? { description } : {}),
    ...(IsOptional(schema) || 'default' in schema ? {} : { required: true }),
    ...('default' in schema ? { defaultValue } : {}),
    ...(sensitive === true ? { sensitive } : {}),
  };
}
