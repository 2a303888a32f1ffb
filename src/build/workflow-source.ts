import { type TProperties, type TSchema, Type } from 'typebox';
import { completeWorkflow } from '../engine/definition/complete.ts';
import { canonicalJson, defined, type JsonObject } from '../protocol/format/json.ts';
import type { PortValue, WorkflowDefinition, WorkflowEdge, WorkflowVariable } from '../protocol/running/workflows.ts';
import { defineWorkflow, type WorkflowHead } from './define-workflow.ts';
import type { Flow, StepSettings } from './flow.ts';
import { type Step, Transition, Value } from './flow-values.ts';
import { ProjectProblem } from './project-problem.ts';
import { call, literal, member, Raw } from './source-text.ts';

/** A workflow as a file of code. */
export interface WorkflowSource {
  /** The constant that the file exports. */
  readonly name: string;
  readonly text: string;
}

/**
 * A workflow as code that makes exactly this definition again. What `defineWorkflow` cannot say, such as a cycle, is
 * written as a constant instead. The same definition always gives the same text.
 */
export function workflowSource(definition: WorkflowDefinition): WorkflowSource {
  const name = numbered([...TAKEN, `${camelCase(definition.id)}Workflow`]).at(-1)!;
  const text = isSayable(definition) ? codeOf(name, definition) : constantOf(name, definition);
  return { name, text };
}

/** Whether `defineWorkflow` makes the same definition of the same steps. */
function isSayable(definition: WorkflowDefinition): boolean {
  try {
    return canonicalJson(rebuilt(definition)) === canonicalJson(definition);
  } catch (error) {
    if (error instanceof ProjectProblem) return false;
    throw error;
  }
}

function rebuilt(definition: WorkflowDefinition): WorkflowDefinition {
  const variables: TProperties = Object.fromEntries(definition.variables.map((each) => [each.name, schemaOf(each)]));
  return defineWorkflow({ ...headOf(definition), variables }, (flow) => {
    const steps = new Map<string, Step<unknown>>();
    for (const node of stepsOf(definition)) {
      const inputs = Object.entries(node.inputs).map(([port, value]) => [port, valueIn(value, steps, flow)]);
      const after = node.after.map((edge) => transitionOf(edge, steps));
      const options = { ...node.options, ...(node.isImplied ? {} : { after }), inputs: Object.fromEntries(inputs) };
      steps.set(node.id, flow.node(node.id, node.typeId, options));
    }
  });
}

/** What a workflow says about itself, without what is filled in. */
function headOf(definition: WorkflowDefinition): Omit<WorkflowHead<TProperties>, 'variables'> {
  const { nodes: _nodes, edges: _edges, variables: _variables, name, version, ...rest } = definition;
  const isSaid = (value: unknown): boolean => !['[]', '{}'].includes(canonicalJson(value));
  const said = Object.fromEntries(Object.entries(rest).filter(([, value]) => isSaid(value)));
  return {
    id: definition.id,
    ...(name === definition.id ? {} : { name }),
    ...(version === '1.0' ? {} : { version }),
    ...said,
  };
}

/** A step as the calls of a workflow in code say it. */
interface PlannedStep {
  readonly id: string;
  readonly typeId: string;
  readonly inputs: Readonly<Record<string, PortValue>>;
  readonly options: Omit<StepSettings, 'after'> & { readonly config?: JsonObject };
  readonly after: readonly WorkflowEdge[];
  /** The step comes after those whose outputs it uses, and no others: that need not be said. */
  readonly isImplied: boolean;
}

function stepsOf(definition: WorkflowDefinition): PlannedStep[] {
  const places = completeWorkflow({ ...definition, nodes: definition.nodes.map(({ position: _, ...node }) => node) });
  return definition.nodes.map(({ id, typeId, name, position, config, inputs, settings, ...rest }, index) => {
    const after = definition.edges.filter(({ targetNodeId }) => targetNodeId === id);
    const isPlaced = canonicalJson(places.nodes[index]!.position) === canonicalJson(position);
    const options = {
      ...(name === id ? {} : { name }),
      ...rest,
      ...(isPlaced ? {} : { position }),
      ...(Object.keys(config).length > 0 ? { config } : {}),
      ...settings,
    };
    const used = Object.values(inputs).flatMap((value) => (value.type === 'connection' ? [value.nodeId] : []));
    const isImplied = after.every((edge) => used.includes(edge.sourceNodeId) && !edge.condition && !edge.triggerRule);
    return { id, typeId, inputs, options, after, isImplied };
  });
}

function schemaOf({ name: _name, type, required, defaultValue, format: _format, ...rest }: WorkflowVariable): TSchema {
  const options = defined({ ...rest, default: defaultValue });
  const schema = MAKERS[type](options);
  return required || defaultValue !== undefined ? schema : Type.Optional(schema);
}

const MAKERS: Readonly<Record<WorkflowVariable['type'], (options: JsonObject) => TSchema>> = {
  string: Type.String,
  number: Type.Number,
  boolean: Type.Boolean,
  array: (options) => Type.Array(Type.Unknown(), options),
  object: (options) => Type.Object({}, options),
};

function valueIn(value: PortValue, steps: ReadonlyMap<string, Step<unknown>>, { variables }: Flow<TProperties>) {
  if (value.type === 'static') return value.value;
  if (value.type === 'variable') return variables[value.variableName] ?? unsayable();
  if (value.type === 'connection' && !steps.has(value.nodeId)) return unsayable();
  return new Value(value);
}

function transitionOf(
  { sourceNodeId, condition, triggerRule }: WorkflowEdge,
  steps: ReadonlyMap<string, Step<unknown>>,
): Transition {
  return new Transition(steps.get(sourceNodeId) ?? unsayable(), { condition, triggerRule });
}

function unsayable(): never {
  throw new ProjectProblem('A step can refer only to earlier steps.');
}

function constantOf(name: string, definition: WorkflowDefinition): string {
  return `${importOf(['AuthoredWorkflow'], { keyword: 'import type' })}
export const ${name}: AuthoredWorkflow = ${literal(definition)};
`;
}

/** The line that imports names, by default from what projects are built with. */
export function importOf(names: readonly string[], { from = BUILD, keyword = 'import' } = {}): string {
  return `${keyword} { ${names.join(', ')} } from ${literal(from)};\n`;
}

function codeOf(name: string, definition: WorkflowDefinition): string {
  const variables = definition.variables.map((each): [string, Raw] => [each.name, variableText(each)]);
  const head = { ...headOf(definition), ...(variables.length > 0 ? { variables: Object.fromEntries(variables) } : {}) };
  const steps = stepsOf(definition);
  const used = new Set(steps.flatMap(usedBy));
  const names = stepNames(steps);
  const nameOf: StepNaming = (id) => names.get(id)!;
  const lines = steps.map((step) => {
    const made = call('node', [step.id, step.typeId, ...optionsText(step, nameOf)], 2);
    return `    ${used.has(step.id) ? `const ${nameOf(step.id)} = ` : ''}${made};\n`;
  });
  const body = lines.join('');
  const taken = ['node', ...(body.includes('variables.') || body.includes('variables[') ? ['variables'] : [])];
  const code = `export const ${name} = defineWorkflow(
  ${literal(head, 1)},
  ({ ${taken.join(', ')} }) => {
${body}  },
);
`;
  const imported = IMPORTS.filter((each) => new RegExp(`\\b${each}[(.]`).test(code));
  return `${importOf(imported)}\n${code}`;
}

const BUILD = 'capstan/build';
const IMPORTS = ['cel', 'defineWorkflow', 'ended', 'ifFailed', 'Transition', 'Type', 'when'];
/** What the file of a workflow imports under a name that a workflow could have, too. */
const TAKEN = ['AuthoredWorkflow', 'defineWorkflow'];

/** The steps whose constants a step names. */
function usedBy({ inputs, after, isImplied }: PlannedStep): string[] {
  const connected = Object.values(inputs).flatMap((value) => (value.type === 'connection' ? [value.nodeId] : []));
  return [...connected, ...(isImplied ? [] : after.map(({ sourceNodeId }) => sourceNodeId))];
}

function optionsText({ inputs, options, after, isImplied }: PlannedStep, nameOf: StepNaming): object[] {
  const ports = Object.entries(inputs).map(([port, value]) => [port, valueText(value, nameOf)]);
  const transitions = after.map((edge) => transitionText(edge, nameOf));
  const said = {
    ...options,
    ...(ports.length > 0 ? { inputs: Object.fromEntries(ports) } : {}),
    ...(isImplied ? {} : { after: transitions.length === 1 ? transitions[0] : transitions }),
  };
  return Object.keys(said).length > 0 ? [said] : [];
}

function valueText(value: PortValue, nameOf: StepNaming): unknown {
  if (value.type === 'static') return value.value;
  if (value.type === 'variable') return new Raw(`variables${member(value.variableName)}`);
  if (value.type === 'connection') return new Raw(`${nameOf(value.nodeId)}.output(${literal(value.outputKey)})`);
  return new Raw(`cel(${literal(value.expression)})`);
}

function transitionText({ sourceNodeId, condition, triggerRule }: WorkflowEdge, nameOf: StepNaming): Raw {
  const from = nameOf(sourceNodeId);
  if (!condition && !triggerRule) return new Raw(from);
  if (condition?.type === 'expression' && !triggerRule)
    return new Raw(`when(${from}, ${literal(condition.expression)})`);
  if (!condition && triggerRule === 'any_failed') return new Raw(`ifFailed(${from})`);
  if (!condition && triggerRule === 'all_complete') return new Raw(`ended(${from})`);
  return new Raw(`new Transition(${from}, ${literal(defined({ condition, triggerRule }))})`);
}

function variableText({ type, required, defaultValue, description, sensitive }: WorkflowVariable): Raw {
  const options = defined({ description, default: defaultValue, sensitive });
  const given = Object.keys(options).length > 0 ? [options] : [];
  const made = call(`Type.${TYPE_NAMES[type]}`, [...LEADING[type], ...given], 2);
  return new Raw(required || defaultValue !== undefined ? made : `Type.Optional(${made})`);
}

const TYPE_NAMES = { string: 'String', number: 'Number', boolean: 'Boolean', array: 'Array', object: 'Object' };
const LEADING = { string: [], number: [], boolean: [], array: [new Raw('Type.Unknown()')], object: [{}] };

/** The constant of the step with an id. */
type StepNaming = (id: string) => string;

/** The constants of steps. They end in a word of their own, so they are never words of the language. */
function stepNames(steps: readonly PlannedStep[]): ReadonlyMap<string, string> {
  const names = numbered(steps.map(({ id }) => `${camelCase(id)}Step`));
  return new Map(steps.map(({ id }, index) => [id, names[index]!]));
}

/** Names with a number behind those that came before: different ids can give the same one. */
export function numbered(names: readonly string[]): string[] {
  const counts = new Map<string, number>();
  return names.map((name) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count === 1 ? name : `${name}${count}`;
  });
}

function camelCase(id: string): string {
  const words = id.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const joined = words.map((word, index) => (index === 0 ? word : word[0]!.toUpperCase() + word.slice(1))).join('');
  return /^[A-Za-z]/.test(joined) ? joined : `_${joined}`;
}
