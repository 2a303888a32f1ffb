import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;

export const VERIFIER_KINDS = ['criteria', 'schema', 'checklist', 'workflow', 'model'] as const;
export type VerifierKind = (typeof VERIFIER_KINDS)[number];

/** A judge looks at no more than this, and says no more. */
export const CRITERIA_MAX = 50;

const criterion = {
  key: Type.String({ minLength: 1, maxLength: 128, description: 'What evidence calls it' }),
  expression: Type.String({
    minLength: 1,
    maxLength: 4_096,
    description: 'CEL over `run`, `outputs` (node id to outputs), `variables` and `annotations`; met when it is true',
  }),
};

export const Criterion = Closed(criterion, { $id: 'Criterion' });
export type Criterion = Static<typeof Criterion>;

export const ChecklistItem = Closed(
  { ...criterion, required: Optional(Type.Boolean({ description: 'One that is not required is told, and no more' })) },
  { $id: 'ChecklistItem' },
);
export type ChecklistItem = Static<typeof ChecklistItem>;

/** A provider, or one of its models: `local` or `local/small-1`. */
export const ModelName = Type.String({
  pattern: '^[a-z0-9][a-z0-9._-]{0,63}(/[^\\s]{1,128})?$',
  description: 'A configured provider, or one of its models as provider/model',
});

/** How something is judged: the fields of its kind. */
export const verifierSpec = {
  kind: OneOf(VERIFIER_KINDS),
  criteria: Optional(Type.Array(Criterion, { minItems: 1, maxItems: CRITERIA_MAX, description: 'All must be met' })),
  schema: Optional(Type.Unsafe<Record<string, unknown>>({ ...AnyObject, description: 'JSON Schema of `outputs`' })),
  items: Optional(
    Type.Array(ChecklistItem, { minItems: 1, maxItems: CRITERIA_MAX, description: 'All required ones must be met' }),
  ),
  workflowId: Optional(Type.String({ minLength: 1, maxLength: 128, description: 'Its run gives the verdict' })),
  rubric: Optional(Type.String({ minLength: 1, maxLength: 16_000, description: 'What a model judges by' })),
  model: Optional(ModelName),
};

export const VerifierSpec = Closed(verifierSpec);
export type VerifierSpec = Static<typeof VerifierSpec>;

const Description = Type.String({ maxLength: 2_000 });

export const VerifierRequest = Closed(
  {
    id: Optional(
      Type.String({
        pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
        description: 'One that is there already gets a new version',
      }),
    ),
    description: Optional(Description),
    ...verifierSpec,
  },
  { $id: 'VerifierRequest' },
);
export type VerifierRequest = Static<typeof VerifierRequest>;

export const Verifier = Type.Object(
  {
    id: NonEmpty,
    version: Type.Integer({ minimum: 1 }),
    description: Optional(Description),
    ...verifierSpec,
    createdBy: NonEmpty,
    createdAt: Timestamp,
  },
  { $id: 'Verifier' },
);
export type Verifier = Static<typeof Verifier>;

/** What a judge looked at, and what it found. */
export const Evidence = Closed({
  key: Type.String({ minLength: 1, maxLength: 128 }),
  met: Type.Boolean(),
  detail: Optional(Type.String({ maxLength: 500 })),
});
export type Evidence = Static<typeof Evidence>;
