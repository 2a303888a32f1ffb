import { type Static, Type } from 'typebox';
import { isObject, type JsonObject } from '../format/json.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { SEMVER } from '../format/versions.ts';

const Optional = Type.Optional;

export const PROMPT_KINDS = ['system', 'user', 'few-shot', 'schema-hint'] as const;
export type PromptKind = (typeof PROMPT_KINDS)[number];
export const PromptKind = OneOf(PROMPT_KINDS);

export const PROMPT_SOURCES = ['host', 'pack', 'user'] as const;
export type PromptSource = (typeof PROMPT_SOURCES)[number];

export const CONTENT_TRUST = ['trusted', 'untrusted'] as const;
export type ContentTrust = (typeof CONTENT_TRUST)[number];
export const ContentTrust = OneOf(CONTENT_TRUST);

/** How much of a composed prompt the log shows: nothing, digests, or its text. */
export const PROMPT_OBSERVABILITY = ['off', 'hashed', 'full'] as const;
export type PromptObservability = (typeof PROMPT_OBSERVABILITY)[number];

export const TEMPLATE_TEXT_MAX = 65_536;

const TEMPLATE_ID = '[a-z0-9][a-z0-9._-]{0,127}';
const VARIABLE_NAME = '[a-zA-Z_][a-zA-Z0-9_]{0,63}';
const REF = new RegExp(`^prompt:(${TEMPLATE_ID})(?:@(${SEMVER}))?$`);

/** `{{name}}` in a template's text. Logic there is none. */
export const PLACEHOLDER = new RegExp(`\\{\\{\\s*(${VARIABLE_NAME})\\s*\\}\\}`, 'g');

export const TemplateId = Type.String({ pattern: `^${TEMPLATE_ID}$` });
export const TemplateVersion = Type.String({ pattern: `^${SEMVER}$`, maxLength: 128 });

export const PromptVariable = Closed({
  name: Type.String({ pattern: `^${VARIABLE_NAME}$` }),
  type: OneOf(['string', 'number', 'boolean', 'array', 'object']),
  required: Type.Boolean(),
  source: Optional(
    OneOf(['input', 'variable', 'secret', 'context'], { description: '`input` unless it says otherwise' }),
  ),
  extractPath: Optional(
    Type.String({
      pattern: '^\\$?(?:(?:^|\\.)[A-Za-z_][A-Za-z0-9_-]*|\\[[0-9]+\\])*$',
      maxLength: 256,
      description: 'Where in the value: members and indexes, such as `$.order.lines[0]`',
    }),
  ),
  defaultValue: Optional(Type.Unknown()),
  description: Optional(Type.String({ maxLength: 500 })),
});
export type PromptVariable = Static<typeof PromptVariable>;

export const PromptTemplate = Closed(
  {
    templateId: TemplateId,
    version: TemplateVersion,
    kind: PromptKind,
    text: Type.String({ maxLength: TEMPLATE_TEXT_MAX }),
    name: Optional(Type.String({ maxLength: 200 })),
    description: Optional(Type.String({ maxLength: 2_000 })),
    variables: Optional(Type.Array(PromptVariable, { maxItems: 256 })),
    modelHints: Optional(
      Closed({
        modelClass: Optional(Type.String({ maxLength: 256 })),
        temperature: Optional(Type.Number({ minimum: 0, maximum: 2 })),
        maxTokens: Optional(Type.Integer({ minimum: 1 })),
        envelopeType: Optional(Type.String()),
      }),
    ),
    tags: Optional(Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 32 })),
    meta: Optional(
      Closed({
        author: Optional(Type.String({ maxLength: 256 })),
        createdAt: Optional(Timestamp),
        updatedAt: Optional(Timestamp),
        source: Optional(OneOf(PROMPT_SOURCES)),
        packName: Optional(Type.String()),
        packVersion: Optional(TemplateVersion),
      }),
    ),
  },
  { $id: 'PromptTemplate' },
);
export type PromptTemplate = Static<typeof PromptTemplate>;

export const PromptRef = Type.Union([
  Type.String({ pattern: REF.source, maxLength: 272, description: '`prompt:<templateId>[@<version>]`' }),
  Closed({
    templateId: TemplateId,
    libraryId: Optional(TemplateId),
    version: Optional(TemplateVersion),
    variableOverrides: Optional(AnyObject),
  }),
]);
export type PromptRef = Static<typeof PromptRef>;

/** What a reference points at. Without a version it is the latest. */
export interface PromptTarget {
  readonly templateId: string;
  readonly version?: string;
  readonly libraryId?: string;
  readonly variableOverrides?: JsonObject;
}

/** Undefined when the value is no reference to a prompt. */
export function parsePromptRef(value: unknown): PromptTarget | undefined {
  if (typeof value === 'string') {
    const [, templateId, version] = REF.exec(value) ?? [];
    if (templateId === undefined) return undefined;
    return version === undefined ? { templateId } : { templateId, version };
  }
  if (!isObject(value)) return undefined;
  const { templateId, version, libraryId, variableOverrides } = value;
  const isRef =
    typeof templateId === 'string' &&
    REF.test(`prompt:${templateId}${version === undefined ? '' : `@${version}`}`) &&
    (libraryId === undefined || typeof libraryId === 'string') &&
    (variableOverrides === undefined || isObject(variableOverrides));
  return isRef ? (value as unknown as PromptTarget) : undefined;
}

/** The short form of a reference. */
export function promptRefText({ templateId, version }: Pick<PromptTarget, 'templateId' | 'version'>): string {
  return version === undefined ? `prompt:${templateId}` : `prompt:${templateId}@${version}`;
}

const Sha256 = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' });

export const RenderRequest = Closed(
  {
    ref: PromptRef,
    variables: Optional(AnyObject),
    contentTrust: Optional(ContentTrust),
    workspaceId: Optional(NonEmpty),
  },
  { $id: 'RenderPromptRequest' },
);

export const RenderReply = Closed(
  {
    composed: Type.String(),
    hash: Sha256,
    refs: Type.Array(Type.String()),
    variableHashes: MapOf(Sha256),
    contentTrust: ContentTrust,
  },
  { $id: 'RenderPromptReply' },
);

export const PROMPT_LAYERS = [
  'run-configurable',
  'node',
  'agent-intrinsic',
  'agent-overrides',
  'agent-library-default',
  'workflow-defaults',
  'host-defaults',
] as const;
export type PromptLayer = (typeof PROMPT_LAYERS)[number];

/** Which layer's prompt a node got for one slot, and what the other layers had. */
export const PromptResolved = Closed({
  nodeId: NonEmpty,
  kind: PromptKind,
  agentId: Optional(NonEmpty),
  chain: Type.Array(
    Closed({
      layer: OneOf(PROMPT_LAYERS),
      applied: Type.Boolean(),
      source: Optional(Type.String()),
      reason: Optional(Type.String()),
    }),
  ),
  resolved: Type.Union([Type.String(), Type.Null()]),
});
export type PromptResolved = Static<typeof PromptResolved>;

/** What a prompt came to: digests always, its text only where the host shows it. */
export const PromptComposed = Closed({
  nodeId: NonEmpty,
  refs: Type.Array(Type.String()),
  kind: OneOf(['system+user', 'system-only', 'user-only', 'agent-reasoning']),
  hash: Sha256,
  composed: Optional(Type.String()),
  systemPrompt: Optional(Type.String()),
  userPrompt: Optional(Type.String()),
  variableBindings: Optional(AnyObject),
  variableHashes: Optional(MapOf(Sha256)),
  contentTrust: Optional(ContentTrust),
});
export type PromptComposed = Static<typeof PromptComposed>;
