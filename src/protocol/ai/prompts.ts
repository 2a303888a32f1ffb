import { type Static, Type } from 'typebox';
import { isObject, type JsonObject } from '../format/json.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { SEMVER } from '../format/versions.ts';

const Optional = Type.Optional;

/** Versions of a prompt that are listed at most. */
export const PROMPT_VERSIONS_MAX = 200;

/** Roles that a prompt can have in a model call. */
export const PROMPT_KINDS = ['system', 'user', 'few-shot', 'schema-hint'] as const;
/** One of PROMPT_KINDS. */
export type PromptKind = (typeof PROMPT_KINDS)[number];
/** Schema of a prompt kind. */
export const PromptKind = OneOf(PROMPT_KINDS);

/** Where a template in the library comes from. */
export const PROMPT_SOURCES = ['host', 'pack', 'user'] as const;
/** One of PROMPT_SOURCES. */
export type PromptSource = (typeof PROMPT_SOURCES)[number];

/** Whether content may contain instructions, or must be marked as untrusted data. */
export const CONTENT_TRUST = ['trusted', 'untrusted'] as const;
/** One of CONTENT_TRUST. */
export type ContentTrust = (typeof CONTENT_TRUST)[number];
/** Schema of a trust level. */
export const ContentTrust = OneOf(CONTENT_TRUST);

/** How much of a composed prompt the log shows: nothing, hashes, or its text. */
export const PROMPT_OBSERVABILITY = ['off', 'hashed', 'full'] as const;
/** One of PROMPT_OBSERVABILITY. */
export type PromptObservability = (typeof PROMPT_OBSERVABILITY)[number];

/** Maximum size of a template's text, in bytes. */
export const TEMPLATE_TEXT_MAX = 65_536;

const TEMPLATE_ID = '[a-z0-9][a-z0-9._-]{0,127}';
const VARIABLE_NAME = '[a-zA-Z_][a-zA-Z0-9_]{0,63}';
const REF = new RegExp(`^prompt:(${TEMPLATE_ID})(?:@(${SEMVER}))?$`);

/** `{{name}}` in a template. Templates have no logic, only placeholders. */
export const PLACEHOLDER = new RegExp(`\\{\\{\\s*(${VARIABLE_NAME})\\s*\\}\\}`, 'g');

/** The id of a prompt template. */
export const TemplateId = Type.String({ pattern: `^${TEMPLATE_ID}$` });
/** The semantic version of a prompt template. */
export const TemplateVersion = Type.String({ pattern: `^${SEMVER}$`, maxLength: 128 });

/** A variable of a template, and where its value comes from. */
export const PromptVariable = Closed({
  name: Type.String({ pattern: `^${VARIABLE_NAME}$` }),
  type: OneOf(['string', 'number', 'boolean', 'array', 'object']),
  required: Type.Boolean(),
  source: Optional(OneOf(['input', 'variable', 'secret', 'context'], { description: 'Defaults to `input`' })),
  extractPath: Optional(
    Type.String({
      pattern: '^\\$?(?:(?:^|\\.)[A-Za-z_][A-Za-z0-9_-]*|\\[[0-9]+\\])*$',
      maxLength: 256,
      description: 'Path into the value: members and indexes, such as `$.order.lines[0]`',
    }),
  ),
  defaultValue: Optional(Type.Unknown()),
  description: Optional(Type.String({ maxLength: 500 })),
});
/** A valid variable declaration; placeholders in the text refer to its `name`. */
export type PromptVariable = Static<typeof PromptVariable>;

/** A versioned prompt in the library; a version never changes. */
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
/** A valid template; `templateId` and `version` together identify it. */
export type PromptTemplate = Static<typeof PromptTemplate>;

/** A reference to a template, as text or as an object with overrides. */
export const PromptRef = Type.Union([
  Type.String({ pattern: REF.source, maxLength: 272, description: '`prompt:<templateId>[@<version>]`' }),
  Closed({
    templateId: TemplateId,
    libraryId: Optional(TemplateId),
    version: Optional(TemplateVersion),
    variableOverrides: Optional(AnyObject),
  }),
]);
/** A reference in either form; `parsePromptRef` turns it into a `PromptTarget`. */
export type PromptRef = Static<typeof PromptRef>;

/** A parsed reference. Without a version it means the latest one. */
export interface PromptTarget {
  readonly templateId: string;
  readonly version?: string;
  readonly libraryId?: string;
  readonly variableOverrides?: JsonObject;
}

/** Parses either form of a reference; undefined if the value is not one. */
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

/** The textual form of a reference. */
export function promptRefText({ templateId, version }: Pick<PromptTarget, 'templateId' | 'version'>): string {
  return version === undefined ? `prompt:${templateId}` : `prompt:${templateId}@${version}`;
}

const Sha256 = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' });

/** Composes a template with given values, for a preview outside a run. */
export const RenderRequest = Closed(
  {
    ref: PromptRef,
    variables: Optional(AnyObject),
    contentTrust: Optional(ContentTrust),
    workspaceId: Optional(NonEmpty),
  },
  { $id: 'RenderPromptRequest' },
);

/** The composed prompt, with hashes for comparison. */
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

/** Layers that can provide a prompt, highest precedence first (RFC 0029). */
export const PROMPT_LAYERS = [
  'run-configurable',
  'node',
  'agent-intrinsic',
  'agent-overrides',
  'agent-library-default',
  'workflow-defaults',
  'host-defaults',
] as const;
/** One of PROMPT_LAYERS. */
export type PromptLayer = (typeof PROMPT_LAYERS)[number];

/** Payload of `agent.promptResolved`: which layer provided a prompt, and what the other layers had. */
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
/** A valid payload of `agent.promptResolved`; `resolved` is null if no layer provided a prompt. */
export type PromptResolved = Static<typeof PromptResolved>;

/** Payload of `prompt.composed`: always hashes, and the text only if the observability setting is `full`. */
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
/** A valid payload of `prompt.composed`; `hash` is that of the composed text. */
export type PromptComposed = Static<typeof PromptComposed>;

/** The versions of a prompt template that can be used. */
export const PromptVersions = Type.Object(
  { items: Type.Array(Type.Object({ version: TemplateVersion, createdAt: Timestamp })) },
  { $id: 'PromptVersions' },
);
/** The versions of a template, the one that was saved last first. */
export type PromptVersions = Static<typeof PromptVersions>;
