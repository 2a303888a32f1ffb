import type { Criterion, VerifierKind, VerifierSpec } from '../../protocol/learning/verifiers.ts';
import { type ConfigProblem, failure } from '../definition/check.ts';
import { compileSchema } from '../expressions/json-schema.ts';
import { checkCriterion } from './verdict.ts';

/** What each kind must have, and what it may have besides. */
const FIELDS: Record<VerifierKind, { readonly needs: keyof VerifierSpec; readonly takes?: keyof VerifierSpec }> = {
  criteria: { needs: 'criteria' },
  schema: { needs: 'schema' },
  checklist: { needs: 'items' },
  workflow: { needs: 'workflowId' },
  model: { needs: 'rubric', takes: 'model' },
};
const ALL = ['criteria', 'schema', 'items', 'workflowId', 'rubric', 'model'] as const;

/** Why nothing could be judged in this way. */
export function specProblems(spec: VerifierSpec): ConfigProblem[] {
  const { needs, takes } = FIELDS[spec.kind];
  const strays = ALL.filter((field) => spec[field] !== undefined && field !== needs && field !== takes);
  return [
    ...(spec[needs] === undefined ? [{ path: `.${needs}`, message: `The kind ${spec.kind} needs it.` }] : []),
    ...strays.map((field) => ({ path: `.${field}`, message: `The kind ${spec.kind} has none.` })),
    ...criteriaProblems('.criteria', spec.criteria ?? []),
    ...itemProblems(spec),
    ...(spec.schema === undefined ? [] : at('.schema', () => compileSchema(spec.schema))),
  ];
}

/** Criteria can be told apart, and each is an expression over what a judge sees. */
export function criteriaProblems(path: string, criteria: readonly Criterion[]): ConfigProblem[] {
  const keys = criteria.map(({ key }) => key);
  return criteria.flatMap(({ key, expression }, index) => [
    ...(keys.indexOf(key) < index ? [{ path: `${path}.${index}.key`, message: 'Another one has this key.' }] : []),
    ...at(`${path}.${index}.expression`, () => checkCriterion(expression)),
  ]);
}

function itemProblems({ items = [] }: VerifierSpec): ConfigProblem[] {
  const isIdle = items.length > 0 && items.every(({ required }) => required === false);
  return [
    ...(isIdle ? [{ path: '.items', message: 'With nothing required, anything would do.' }] : []),
    ...criteriaProblems('.items', items),
  ];
}

function at(path: string, attempt: () => unknown): ConfigProblem[] {
  return failure(attempt).map((message) => ({ path, message }));
}
