import {
  type ContentTrust,
  PLACEHOLDER,
  type PromptComposed,
  type PromptObservability,
  type PromptTemplate,
  type PromptVariable,
  promptRefText,
} from '../../protocol/ai/prompts.ts';
import { canonicalJson, type JsonObject, valueAt } from '../../protocol/format/json.ts';
import { isOfType } from '../definition/check.ts';
import type { Digest } from '../masking/mask.ts';

/** Maximum characters of a composed prompt; a short template can repeat a long value many times. */
export const COMPOSED_MAX = 524_288;

/** A variable's value: verbatim, as readers may see it, and whether its content is trusted. */
export interface Binding {
  readonly value: unknown;
  readonly shown: unknown;
  readonly trust: ContentTrust;
}

/** Provides the binding of a variable; undefined or null leaves it unbound. */
type Bind = (variable: PromptVariable) => Binding | undefined;

/** The impure functions that composing needs. */
interface ComposeTools {
  readonly digest: Digest;
  /** Removes secrets from text that readers see. */
  readonly redact: (text: string) => string;
}

/** A composed prompt. */
export interface Composition {
  /** The text sent to the model, unmasked; never stored or shown. */
  readonly text: string;
  /** The masked text that readers see; `hash` is computed from it. */
  readonly shown: string;
  readonly hash: string;
  readonly ref: string;
  readonly variableBindings: JsonObject;
  readonly variableHashes: Record<string, string>;
  readonly contentTrust: ContentTrust;
}

/** Why a prompt could not be composed. */
interface ComposeProblem {
  readonly problem: {
    readonly code: 'prompt_variable_unresolved' | 'validation_error';
    readonly message: string;
    readonly details: JsonObject;
  };
}

/**
 * Fills a template with its variables. Deterministic: the same template and bindings give the same text and hashes on
 * every host.
 */
export function composePrompt(template: PromptTemplate, bind: Bind, tools: ComposeTools): Composition | ComposeProblem {
  const bound = new Map<string, Binding>();
  for (const variable of variablesOf(template)) {
    const binding = bindVariable(variable, bind);
    if ('problem' in binding) return binding;
    bound.set(variable.name, binding);
  }
  const text = fill(template.text, bound, ({ value }) => value);
  const filled = fill(template.text, bound, ({ shown }) => shown);
  if (text === undefined || filled === undefined) {
    return problem('validation_error', `The composed prompt exceeds ${COMPOSED_MAX} characters.`, {});
  }
  const shown = tools.redact(filled);
  const values = [...bound].map(([name, binding]) => [name, binding.shown ?? null] as const);
  const hashes = values.map(([name, value]) => [name, `sha256:${tools.digest(canonicalJson(value))}`]);
  const isUntrusted = placeholdersOf(template.text).some((name) => bound.get(name)!.trust === 'untrusted');
  return {
    text,
    shown,
    hash: `sha256:${tools.digest(shown)}`,
    ref: promptRefText(template),
    variableBindings: Object.fromEntries(values),
    variableHashes: Object.fromEntries(hashes),
    contentTrust: isUntrusted ? 'untrusted' : 'trusted',
  };
}

/** A prompt without placeholders, such as an agent's inline system prompt. */
export function literalPrompt(text: string, ref: string, { digest, redact }: ComposeTools): Composition {
  const shown = redact(text);
  const hash = `sha256:${digest(shown)}`;
  return { text, shown, hash, ref, variableBindings: {}, variableHashes: {}, contentTrust: 'trusted' };
}

/** Inserts one part of each binding into the template; undefined if the result would be too long. */
function fill(text: string, bound: ReadonlyMap<string, Binding>, part: (binding: Binding) => unknown) {
  const segments = new Map([...bound].map(([name, binding]) => [name, asSegment(part(binding), binding.trust)]));
  const names = placeholdersOf(text);
  const length = names.reduce((total, name) => total + segments.get(name)!.length, text.length);
  if (length > COMPOSED_MAX) return undefined;
  return text.replace(PLACEHOLDER, (_token, name: string) => segments.get(name)!);
}

/** The variables of a template: declared ones, then placeholders without a declaration. */
export function variablesOf({ text, variables = [] }: PromptTemplate): PromptVariable[] {
  const declared = new Set(variables.map(({ name }) => name));
  const undeclared = [...new Set(placeholdersOf(text))].filter((name) => !declared.has(name));
  // An undeclared variable accepts any type.
  return [...variables, ...undeclared.map((name) => ({ name, required: false }) as PromptVariable)];
}

function placeholdersOf(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name]) => name!);
}

/** The part of a value that a variable's `extractPath` selects. */
export function extract({ extractPath }: PromptVariable, value: unknown): unknown {
  const path = (extractPath ?? '')
    .replace(/^\$\.?/, '')
    .replace(/\[(\d+)\]/g, '.$1')
    .replace(/^\./, '');
  return path === '' ? value : valueAt(value, path);
}

/** How a secret is written in text that readers see. */
export function secretMarker(secretId: string): string {
  return `[REDACTED:${secretId}]`;
}

/** The payload of `prompt.composed`: hashes only, or also the masked text, depending on the observability setting. */
export function composedPayload(
  nodeId: string,
  kind: PromptTemplate['kind'],
  composition: Composition,
  observability: Exclude<PromptObservability, 'off'>,
): PromptComposed {
  const { ref, hash, variableHashes, variableBindings, contentTrust, shown } = composition;
  const digests: PromptComposed = { nodeId, refs: [ref], kind: SHAPES[kind], hash, variableHashes, contentTrust };
  if (observability === 'hashed') return digests;
  return {
    ...digests,
    composed: shown,
    ...(kind === 'system' ? { systemPrompt: shown } : {}),
    ...(kind === 'user' ? { userPrompt: shown } : {}),
    variableBindings,
  };
}

const SHAPES = {
  system: 'system-only',
  user: 'user-only',
  'few-shot': 'agent-reasoning',
  'schema-hint': 'agent-reasoning',
} as const;

function bindVariable(variable: PromptVariable, bind: Bind): Binding | ComposeProblem {
  const { name, type, required, defaultValue } = variable;
  const binding = bind(variable);
  if (binding === undefined || isNothing(binding.value)) {
    if (required) {
      const message = `The prompt variable ${name} is required but has no value.`;
      return problem('prompt_variable_unresolved', message, { variable: name });
    }
    return { value: defaultValue, shown: defaultValue, trust: 'trusted' };
  }
  if (type !== undefined && !isOfType(type, binding.value)) {
    return problem('validation_error', `The value of the prompt variable ${name} is not of type ${type}.`, {
      variable: name,
    });
  }
  return binding;
}

function problem(
  code: ComposeProblem['problem']['code'],
  message: string,
  details: ComposeProblem['problem']['details'],
): ComposeProblem {
  return { problem: { code, message, details } };
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Formats a value for a prompt. Untrusted content is enclosed in markers and cannot forge a closing one. */
export function asSegment(value: unknown, trust: ContentTrust): string {
  const text = isNothing(value) ? '' : typeof value === 'string' ? value : canonicalJson(value);
  return trust === 'trusted' ? text : `<UNTRUSTED>${text.replace(MARKER, '&lt;')}</UNTRUSTED>`;
}

/** Formats a tool's result for a model, marked as untrusted so that it is not taken for instructions. */
export function formatToolResult(name: string, value: unknown): string {
  return asSegment(value, 'untrusted').replace('<UNTRUSTED>', `<UNTRUSTED tool="${name.replace(/[^\w.:/-]/g, '_')}">`);
}

const MARKER = /<(?=[\s/]{0,16}UNTRUSTED)/gi;
