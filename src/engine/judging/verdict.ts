import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import {
  type ChecklistItem,
  CRITERIA_MAX,
  type Criterion,
  type Evidence,
  type VerifierSpec,
} from '../../protocol/learning/verifiers.ts';
import { Allowance } from '../expressions/allowance.ts';
import { expressionLanguage } from '../expressions/expression.ts';
import { ExpressionError } from '../expressions/expression-error.ts';
import type { Reference } from '../expressions/references.ts';

/** The data that a verifier's expressions can refer to. */
export interface JudgedRun {
  /** The run's snapshot, as readers see it. */
  readonly run: object;
  /** Outputs by node id. */
  readonly outputs: JsonObject;
  readonly variables: JsonObject;
  readonly annotations: readonly object[];
}

/** The result of a verifier; the evidence is bounded in number and length. */
export interface Finding {
  readonly satisfied: boolean;
  readonly confidence?: number;
  readonly evidence: readonly Evidence[];
}

const KEY_CHARS_MAX = 128;
const DETAIL_CHARS_MAX = 500;

const CRITERIA = expressionLanguage(['run', 'outputs', 'variables', 'annotations']);

/** Throws ExpressionError if a criterion is not a valid expression over `JudgedRun`, or one that is never true or false. */
export function checkCriterion(expression: string): void {
  CRITERIA.compileCondition(expression);
}

/** What a valid criterion reads by fixed names. */
export const criterionReferences = (expression: string): Reference[] => CRITERIA.references(expression);

/** Evaluates the verifiers that consist of expressions; undefined for other kinds. */
export function judgeLocally(
  { kind, criteria = [], items = [] }: VerifierSpec,
  judged: JudgedRun,
): Finding | undefined {
  if (kind === 'criteria') return judgeCriteria(criteria, judged);
  return kind === 'checklist' ? judgeChecklist(items, judged) : undefined;
}

/** Satisfied if there are criteria and all of them are true. */
export function judgeCriteria(criteria: readonly Criterion[], judged: JudgedRun): Finding {
  const allowance = new Allowance();
  const evidence = criteria.map((criterion) => evidenceFor(criterion, judged, allowance));
  return { satisfied: evidence.length > 0 && evidence.every(({ met }) => met), evidence };
}

/** Satisfied if there are required items and all of them are true. */
export function judgeChecklist(items: readonly ChecklistItem[], judged: JudgedRun): Finding {
  const allowance = new Allowance();
  const evidence = items.map((item) => evidenceFor(item, judged, allowance));
  const required = evidence.filter((_, index) => items[index]!.required !== false);
  return { satisfied: required.length > 0 && required.every(({ met }) => met), evidence };
}

/** Satisfied if there are no problems: the outputs match the schema. */
export function judgeSchema(problems: readonly string[]): Finding {
  const met = problems.length === 0;
  return { satisfied: met, evidence: [evidenceOf({ key: 'schema', met, detail: problems.join('; ') })] };
}

/** Parses a verdict returned by a workflow or a model; undefined if it is malformed. */
export function parseFinding(value: unknown): Finding | undefined {
  if (!isObject(value) || typeof value.satisfied !== 'boolean') return undefined;
  const { satisfied, confidence, evidence = [] } = value;
  if (!isConfidence(confidence) || !Array.isArray(evidence) || !evidence.every(isEvidence)) return undefined;
  const kept = evidence.slice(0, CRITERIA_MAX).map(evidenceOf);
  return { satisfied, ...(typeof confidence === 'number' ? { confidence } : {}), evidence: kept };
}

/**
 * Finds the verdict in a run's final outputs: a node's outputs, or the value of one port. Ambiguous if there are
 * several, so then none counts.
 */
export function extractFinding(outputs: Readonly<Record<string, JsonObject>>): Finding | undefined {
  const candidates = Object.values(outputs).flatMap((given) =>
    [given, ...Object.values(given)].filter((value) => isObject(value) && Object.hasOwn(value, 'satisfied')),
  );
  return candidates.length === 1 ? parseFinding(candidates[0]) : undefined;
}

function evidenceFor({ key, expression }: Criterion, judged: JudgedRun, allowance: Allowance): Evidence {
  try {
    const value = CRITERIA.compile(expression)({ ...judged }, allowance);
    if (typeof value === 'boolean') return evidenceOf({ key, met: value });
    return evidenceOf({ key, met: false, detail: 'The expression did not return true or false.' });
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return evidenceOf({ key, met: false, detail: `The expression failed: ${error.message}.` });
  }
}

function evidenceOf({ key, met, detail }: Evidence): Evidence {
  const shown = detail ? { detail: detail.slice(0, DETAIL_CHARS_MAX) } : {};
  return { key: key.slice(0, KEY_CHARS_MAX), met, ...shown };
}

function isConfidence(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'number' && value >= 0 && value <= 1);
}

function isEvidence(value: unknown): value is Evidence {
  if (!isObject(value)) return false;
  const { key, met, detail } = value;
  const hasKey = typeof key === 'string' && key.length > 0;
  return hasKey && typeof met === 'boolean' && (detail === undefined || typeof detail === 'string');
}
