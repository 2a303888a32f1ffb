import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;

/** Ways to judge a run. */
export const VERIFIER_KINDS = ['criteria', 'schema', 'checklist', 'workflow', 'model'] as const;
/** One of VERIFIER_KINDS. */
export type VerifierKind = (typeof VERIFIER_KINDS)[number];

/** Maximum number of criteria, and of pieces of evidence in a verdict. */
export const CRITERIA_MAX = 50;

const criterion = {
  key: Type.String({ minLength: 1, maxLength: 128, description: 'Name of the criterion in the evidence' }),
  expression: Type.String({
    minLength: 1,
    maxLength: 4_096,
    description: 'CEL expression over `run`, `outputs` (by node id), `variables` and `annotations`; met if true',
  }),
};

/** A named condition on a run. */
export const Criterion = Closed(criterion, { $id: 'Criterion' });
/** A well-formed criterion; the schema does not compile its expression. */
export type Criterion = Static<typeof Criterion>;

/** A criterion that may be optional. */
export const ChecklistItem = Closed(
  {
    ...criterion,
    required: Optional(
      Type.Boolean({ description: 'If false, the item is reported but does not affect the verdict. Defaults to true' }),
    ),
  },
  { $id: 'ChecklistItem' },
);
/** A well-formed checklist item; it counts as required unless `required` is false. */
export type ChecklistItem = Static<typeof ChecklistItem>;

/** A provider, or one of its models: `local` or `local/small-1`. */
export const ModelName = Type.String({
  pattern: '^[a-z0-9][a-z0-9._-]{0,63}(/[^\\s]{1,128})?$',
  description: 'A configured provider, or one of its models as `provider/model`',
});

/** Members that define how to judge; which ones are required depends on `kind`. */
export const verifierSpec = {
  kind: OneOf(VERIFIER_KINDS),
  criteria: Optional(
    Type.Array(Criterion, { minItems: 1, maxItems: CRITERIA_MAX, description: 'Criteria; all must be met' }),
  ),
  schema: Optional(
    Type.Unsafe<Record<string, unknown>>({ ...AnyObject, description: 'JSON Schema that `outputs` must match' }),
  ),
  items: Optional(
    Type.Array(ChecklistItem, {
      minItems: 1,
      maxItems: CRITERIA_MAX,
      description: 'Items; all required ones must be met',
    }),
  ),
  workflowId: Optional(
    Type.String({ minLength: 1, maxLength: 128, description: 'Workflow whose run returns the verdict' }),
  ),
  rubric: Optional(Type.String({ minLength: 1, maxLength: 16_000, description: 'Instructions for the judging model' })),
  model: Optional(ModelName),
};

/** How something is judged, without a registered identity. */
export const VerifierSpec = Closed(verifierSpec);
/** A well-formed specification; the member that `kind` requires may still be missing. */
export type VerifierSpec = Static<typeof VerifierSpec>;

const Description = Type.String({ maxLength: 2_000 });

/** When the verdicts of a verifier on goals need a second judge. */
const SecondJudge = Closed(
  {
    agreementBelow: Type.Number({
      exclusiveMinimum: 0,
      maximum: 1,
      description: 'Share of agreement below which somebody else must agree with a verdict',
    }),
    last: Optional(
      Type.Integer({ minimum: 3, maximum: 1_000, description: 'How many of the latest reviewed verdicts count (20)' }),
    ),
    verifierRef: Optional(
      Type.String({
        minLength: 1,
        maxLength: 160,
        description: 'The verifier that must agree; a person if it is omitted, or if it disagrees',
      }),
    ),
  },
  { description: 'Verdicts on goals need a second judge as long as people often disagree with them' },
);

/** Registers a verifier. */
export const VerifierRequest = Closed(
  {
    id: Optional(
      Type.String({
        pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
        description: 'An existing id gets a new version; generated if omitted',
      }),
    ),
    description: Optional(Description),
    ...verifierSpec,
    secondJudge: Optional(SecondJudge),
  },
  { $id: 'VerifierRequest' },
);
/** A well-formed registration; the host assigns the version. */
export type VerifierRequest = Static<typeof VerifierRequest>;

/** A registered verifier; a version never changes. */
export const Verifier = Type.Object(
  {
    id: NonEmpty,
    version: Type.Integer({ minimum: 1 }),
    description: Optional(Description),
    ...verifierSpec,
    secondJudge: Optional(SecondJudge),
    createdBy: NonEmpty,
    createdAt: Timestamp,
  },
  { $id: 'Verifier' },
);
/** A version of a verifier; `id` and `version` together identify it. */
export type Verifier = Static<typeof Verifier>;

/** One criterion with its result, as part of a verdict. */
export const Evidence = Closed({
  key: Type.String({ minLength: 1, maxLength: 128 }),
  met: Type.Boolean(),
  detail: Optional(Type.String({ maxLength: 500 })),
});
/** The result for the criterion with this `key`; `detail` explains it to people. */
export type Evidence = Static<typeof Evidence>;

/** Marks a prompt template as the rubric of a verifier: the tag is `verifier:<id>`. */
const RUBRIC_TAG = 'verifier:';
const TAG_CHARS_MAX = 64;

/** The tag of a prompt template that is the rubric of a verifier; undefined if its id is too long for a tag. */
export function rubricTag(verifierId: string): string | undefined {
  const tag = `${RUBRIC_TAG}${verifierId}`;
  return tag.length <= TAG_CHARS_MAX ? tag : undefined;
}

/** The verifier whose rubric a prompt template is; undefined for templates of the library. */
export function rubricOf({ tags = [] }: { readonly tags?: readonly string[] | undefined }): string | undefined {
  return tags.find((tag) => tag.startsWith(RUBRIC_TAG))?.slice(RUBRIC_TAG.length);
}
