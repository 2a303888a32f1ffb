import type { Criterion, VerifierKind, VerifierSpec } from '../../protocol/learning/verifiers.ts';
import { type ConfigProblem, failure } from '../definition/check.ts';
import { checkCriterion } from './verdict.ts';

/** The field that each kind of verifier requires, and the one it accepts in addition. */
const FIELDS: Record<VerifierKind, { readonly needs: keyof VerifierSpec; readonly takes?: keyof VerifierSpec }> = {
  criteria: { needs: 'criteria' },
  schema: { needs: 'schema' },
  checklist: { needs: 'items' },
  workflow: { needs: 'workflowId' },
  model: { needs: 'rubric', takes: 'model' },
};
const ALL = ['criteria', 'schema', 'items', 'workflowId', 'rubric', 'model'] as const;

/** Validates a verifier: required and unexpected fields and expressions. Its JSON Schema is not compiled here. */
export function specProblems(spec: VerifierSpec): ConfigProblem[] {
  const { needs, takes } = FIELDS[spec.kind];
  const unexpected = ALL.filter((field) => spec[field] !== undefined && field !== needs && field !== takes);
  return [
    ...(spec[needs] === undefined
      ? [{ path: `.${needs}`, message: `A verifier of kind ${spec.kind} needs ${needs}.` }]
      : []),
    ...unexpected.map((field) => ({
      path: `.${field}`,
      message: `A verifier of kind ${spec.kind} does not accept ${field}.`,
    })),
    ...criteriaProblems('.criteria', spec.criteria ?? []),
    ...itemProblems(spec),
  ];
}

/** Validates criteria: keys must be unique and expressions must compile. */
export function criteriaProblems(path: string, criteria: readonly Criterion[]): ConfigProblem[] {
  const keys = criteria.map(({ key }) => key);
  return criteria.flatMap(({ key, expression }, index) => [
    ...(keys.indexOf(key) < index
      ? [{ path: `${path}.${index}.key`, message: `Duplicate key ${JSON.stringify(key)}.` }]
      : []),
    ...at(`${path}.${index}.expression`, () => checkCriterion(expression)),
  ]);
}

function itemProblems({ items = [] }: VerifierSpec): ConfigProblem[] {
  const isAllOptional = items.length > 0 && items.every(({ required }) => required === false);
  return [
    ...(isAllOptional ? [{ path: '.items', message: 'At least one item must be required.' }] : []),
    ...criteriaProblems('.items', items),
  ];
}

function at(path: string, attempt: () => unknown): ConfigProblem[] {
  return failure(attempt).map((message) => ({ path, message }));
}
