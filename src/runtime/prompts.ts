import { Type } from 'typebox';
import type { ConfigProblem } from '../engine/definition/check.ts';
import { type AgentPrompts, choosePrompt, type PromptChoice, pinChoice } from '../engine/models/prompt-chain.ts';
import {
  type Binding,
  type Composition,
  composedPayload,
  composePrompt,
  extract,
  literalPrompt,
} from '../engine/models/prompt-text.ts';
import type { Agent } from '../protocol/ai/agents.ts';
import {
  type PromptKind,
  type PromptTarget,
  type PromptTemplate,
  type PromptVariable,
  parsePromptRef,
  promptRefText,
} from '../protocol/ai/prompts.ts';
import { type JsonObject, own } from '../protocol/format/json.ts';
import { sha256Hex } from '../system/digest.ts';
import { redactText } from '../system/redaction.ts';
import type { ModelMessage } from './effects/model.ts';
import { type NodeContext, NodeFailure } from './node-type.ts';

/** A prompt of a node, composed from a template of the library or from an agent's own text. */
interface ComposedPrompt extends Composition {
  readonly kind: PromptKind;
}

/** The kinds in the order of the messages to the model. */
const KINDS: readonly PromptKind[] = ['system', 'schema-hint', 'few-shot', 'user'];

/** Config keys that refer to prompts of each kind. */
const REFS: Record<PromptKind, readonly string[]> = {
  system: ['systemPromptRef'],
  'schema-hint': ['schemaHintPromptRef'],
  'few-shot': ['fewShotPromptRefs', 'additionalPromptRefs'],
  user: ['userPromptRef'],
};
/** Message role of each kind. */
const ROLES = { system: 'system', 'schema-hint': 'system', 'few-shot': 'user', user: 'user' } as const;
/** Config keys that hold the text of a prompt instead of a reference. */
const INLINE: Partial<Record<PromptKind, string>> = { system: 'systemPrompt', user: 'userPrompt' };

const Ref = Type.Optional(Type.Unknown({ description: 'A reference to a prompt' }));
const Refs = Type.Optional(Type.Unknown({ description: 'A list of references to prompts' }));

/** Config keys of every node type whose prompts `composePrompts` composes; `promptRefProblems` checks the references. */
export const PROMPT_KEYS = {
  agentId: Type.Optional(Type.String({ minLength: 3, maxLength: 256, description: 'The agent whose prompts apply' })),
  systemPrompt: Type.Optional(Type.String()),
  userPrompt: Type.Optional(Type.String()),
  systemPromptRef: Ref,
  userPromptRef: Ref,
  schemaHintPromptRef: Ref,
  fewShotPromptRefs: Refs,
  additionalPromptRefs: Refs,
};

/** A prompt that was chosen for a node. */
interface Slot {
  readonly kind: PromptKind;
  readonly choice: PromptChoice;
  /** The template in the library; undefined for an agent's own system prompt. */
  readonly target?: PromptTarget | undefined;
}

/**
 * Chooses, fetches and composes the prompts of a node, and records the choice and the composed text. Another call in
 * the same visit of the node gives the same prompts, because the templates are recorded as an effect of the node.
 */
export async function composePrompts(context: NodeContext, actingAgent?: Agent): Promise<ComposedPrompt[]> {
  const agent = actingAgent ?? (await boundAgent(context));
  const slots = slotsOf(context, agent && promptsOf(agent));
  if (slots.length === 0) return [];
  const targets = slots.flatMap(({ target }) => target ?? []);
  const { templates, observability } = await context.effects.prompts({ targets });
  warnOfUnusedInlineText(context, slots);
  return slots.map(({ kind, target, choice }) => {
    const template = target && templates[targets.indexOf(target)];
    recordChoice(context, kind, template ? pinChoice(choice, template.version) : choice, agent);
    const composition = target
      ? compose(context, kind, target, template)
      : literalPrompt(agent!.systemPrompt, choice.resolved!, TEXT_FUNCTIONS);
    if (observability !== 'off') {
      const payload = composedPayload(context.node.id, kind, composition, observability);
      context.emitStep({ type: 'prompt.composed', nodeId: context.node.id, payload });
    }
    return { ...composition, kind };
  });
}

/** Hashing and redaction for the engine, which may import neither. */
const TEXT_FUNCTIONS = { digest: sha256Hex, redact: redactText };

/** The agent that the node's config names; an unknown one is reported in the log, and the node goes on without it. */
async function boundAgent(context: NodeContext): Promise<Agent | undefined> {
  const { agentId } = context.config;
  if (typeof agentId !== 'string') return undefined;
  const { agent } = await context.effects.agent({ agentId });
  if (agent) return agent;
  warn(context, 'agent_binding_unresolvable', 'The agent of this node is not known here; its prompts are left out.');
  return undefined;
}

function promptsOf({ manifest: { agentId, promptOverrides }, systemPrompt }: Agent): AgentPrompts {
  return { agentId, systemPrompt, promptOverrides };
}

/** Turns prompts into model messages; a kind without a prompt uses the inline text of the node's config. */
export function promptMessages({ config }: NodeContext, prompts: readonly ComposedPrompt[]): ModelMessage[] {
  return KINDS.flatMap((kind) => {
    const composed = prompts.filter((prompt) => prompt.kind === kind).map(({ text }) => text);
    const inline = config[INLINE[kind] ?? ''];
    const texts = composed.length === 0 && typeof inline === 'string' ? [inline] : composed;
    return texts.map((content) => ({ role: ROLES[kind], content }));
  });
}

/** The prompt references of one kind in a node's config, not parsed. */
export function promptRefsOf(config: JsonObject, kind: PromptKind): unknown[] {
  return REFS[kind].flatMap((key) => own(config, key) ?? []);
}

/** Finds prompt references in a node's config that cannot be parsed. */
export function promptRefProblems(config: JsonObject): ConfigProblem[] {
  return Object.values(REFS).flatMap((keys) => keys.flatMap((key) => problemsAt(key, own(config, key))));
}

function problemsAt(key: string, value: unknown): ConfigProblem[] {
  if (value === undefined || (!isList(key) && parsePromptRef(value))) return [];
  if (!isList(key)) return [{ path: `.${key}`, message: 'This is not a prompt reference.' }];
  if (!Array.isArray(value)) return [{ path: `.${key}`, message: 'This is not a list of prompt references.' }];
  const invalid = [...value.keys()].filter((index) => !parsePromptRef(value[index]));
  return invalid.map((index) => ({ path: `.${key}.${index}`, message: 'This is not a prompt reference.' }));
}

function isList(key: string): boolean {
  return REFS['few-shot'].includes(key);
}

/** Chooses the prompts of every kind. Agent, run and workflow only compete for the first prompt of a kind. */
function slotsOf(context: NodeContext, agent: AgentPrompts | undefined): Slot[] {
  return KINDS.flatMap((kind) => {
    const refs = promptRefsOf(context.config, kind);
    const choices = (refs.length > 0 ? refs : [undefined]).map((node, index) =>
      choosePrompt({ kind, node, ...(index === 0 ? { agent, ...otherLayers(context, kind) } : {}) }),
    );
    return choices.flatMap((choice) => (choice.resolved === null ? [] : [{ kind, choice, target: choice.target }]));
  });
}

function otherLayers({ configurable, workflow }: NodeContext, kind: PromptKind): { run: unknown; workflow: unknown } {
  return { run: own(configurable.promptOverrides, kind), workflow: workflow.defaults?.promptRefs?.[kind] };
}

/** Warns in the log about inline text that is not used, because a prompt of the library takes precedence. */
function warnOfUnusedInlineText(context: NodeContext, slots: readonly Slot[]): void {
  for (const { kind, choice } of slots) {
    const inline = INLINE[kind];
    if (inline === undefined || context.config[inline] === undefined) continue;
    warn(context, 'prompt_ref_supersedes_inline', `${choice.resolved} is used in place of ${inline}.`);
  }
}

function warn({ node, emit }: NodeContext, code: string, message: string): void {
  emit({
    type: 'log.appended',
    nodeId: node.id,
    payload: { level: 'warn', message, nodeId: node.id, fields: { code } },
  });
}

function recordChoice(
  { node, emitStep }: NodeContext,
  kind: PromptKind,
  { chain, resolved }: PromptChoice,
  agent: Agent | undefined,
): void {
  const bound = agent ? { agentId: agent.manifest.agentId } : {};
  emitStep({
    type: 'agent.promptResolved',
    nodeId: node.id,
    payload: { nodeId: node.id, kind, ...bound, chain, resolved },
  });
}

function compose(
  context: NodeContext,
  kind: PromptKind,
  target: PromptTarget,
  template: PromptTemplate | null | undefined,
): Composition {
  if (!template) throw failure('prompt_not_found', `The library has no ${promptRefText(target)}.`);
  if (template.kind !== kind) {
    throw failure(
      'validation_error',
      `${promptRefText(target)} is for ${template.kind} prompts, not for ${kind} ones.`,
    );
  }
  const composed = composePrompt(template, (variable) => bindingOf(context, target, variable), TEXT_FUNCTIONS);
  if ('problem' in composed) throw failure(composed.problem.code, composed.problem.message, composed.problem.details);
  return composed;
}

function failure(code: string, message: string, details?: JsonObject): NodeFailure {
  return new NodeFailure({ code, message, retryable: false, ...(details ? { details } : {}) });
}

/** The value of a template variable. Only values written by the workflow's author or the host are trusted. */
function bindingOf(context: NodeContext, target: PromptTarget, variable: PromptVariable): Binding | undefined {
  const override = own(target.variableOverrides, variable.name);
  if (override !== undefined && variable.source !== 'secret') return trusted(override);
  switch (variable.source ?? 'input') {
    case 'input': {
      const isStatic = own(context.node.inputs, variable.name)?.type === 'static';
      return bind(variable, context.inputs, context.masked().inputs, isStatic ? 'trusted' : 'untrusted');
    }
    case 'variable':
      return bind(variable, context.variables, context.masked().variables, 'untrusted');
    case 'context':
      return trusted(own(hostContext(context), variable.name));
    case 'secret':
      // This host does not provide secrets to prompts.
      return undefined;
  }
}

function bind(
  variable: PromptVariable,
  values: JsonObject,
  masked: JsonObject,
  trust: Binding['trust'],
): Binding | undefined {
  const { name } = variable;
  return { value: extract(variable, own(values, name)), shown: extract(variable, own(masked, name)), trust };
}

function trusted(value: unknown): Binding {
  return { value, shown: value, trust: 'trusted' };
}

/** Variables that the host provides. `now` is the start of the attempt, so that composing again gives the same text. */
function hostContext({ runId, workflow, owner, node, startedAt }: NodeContext): Record<string, string> {
  return {
    runId,
    workflowId: workflow.id,
    workflowName: workflow.name,
    tenantId: owner.tenant,
    nodeId: node.id,
    now: new Date(startedAt).toISOString(),
    ...(owner.principal === undefined ? {} : { currentUserId: owner.principal }),
  };
}
