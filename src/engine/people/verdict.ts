import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { InterruptKind } from '../../protocol/running/events.ts';
import type { EdgeCondition } from '../../protocol/running/workflows.ts';
import type { PlannedEdge } from '../definition/plan.ts';
import { Allowance } from '../expressions/allowance.ts';
import type { Scope } from '../expressions/condition.ts';

/**
 * What the answer to an interrupt, or the result of a verification, means for the edges of its node. Of interrupts only
 * an approval can be anything but granted.
 */
export type Verdict = 'granted' | 'refused' | 'refine';

/** Whether an interrupt of this kind asks for approval: of an artifact, or of what an agent is not sure about. */
export function isApprovalKind(kind: unknown): boolean {
  return kind === 'approval' || kind === 'low-confidence';
}

const GRANTS: readonly unknown[] = ['accept', 'edit-accept', 'granted', 'overridden'];

/** The verdict of an answer. An approval is granted only by an answer that says so. */
export function verdictOf(kind: InterruptKind, answer: unknown): Verdict {
  const { action, decision } = isObject(answer) ? answer : ({} as JsonObject);
  if (kind === 'low-confidence') return action === 'reject' ? 'refused' : 'granted';
  if (kind !== 'approval' || GRANTS.includes(action ?? decision)) return 'granted';
  return action === 'refine' ? 'refine' : 'refused';
}

/** The node type that judges work; it is a gate that nobody has to answer. */
export const VERIFY = 'vendor.capstan.verify';

/** The verdict that a completed node gives by itself. */
export function ownVerdict(typeId: string, outputs: JsonObject | undefined): Verdict {
  return typeId === VERIFY && outputs?.verdict !== 'pass' ? 'refused' : 'granted';
}

/**
 * Whether an edge is meant for an outcome other than granted: its condition holds, and not for some other reason. It
 * names the outcome, or it would not hold if the node had been granted with otherwise equal outputs.
 */
export function isMeantFor(
  { edge, condition }: PlannedEdge,
  scope: Scope,
  outputs: JsonObject,
  allowance: Allowance,
): boolean {
  if (!condition) return false;
  const scopeWith = (output: JsonObject): Scope => ({
    ...scope,
    nodes: { ...scope.nodes, [edge.sourceNodeId]: output },
    output,
  });
  if (!condition(scopeWith(outputs), allowance)) return false;
  if (outcomeWords(outputs).some((word) => names(edge.condition!, word))) return true;
  const isOnlyNow = failsOrIsFalse(() => condition(scopeWith(asGranted(outputs)), allowance));
  // Fails closed: an evaluation that was cut short says nothing about what would hold.
  allowance.check();
  return isOnlyNow;
}

/** Whether any of these edges is meant for an outcome other than granted. */
export function isRouted(edges: readonly PlannedEdge[], scope: Scope, outputs: JsonObject): boolean {
  const allowance = new Allowance();
  return edges.some((edge) => !failsOrIsFalse(() => isMeantFor(edge, scope, outputs, allowance)));
}

function failsOrIsFalse(holds: () => boolean): boolean {
  try {
    return !holds();
  } catch {
    return true;
  }
}

/** The words for what was decided: `reject`, `rejected`, `timeout` or `refine`, or `fail` or `revise` of a verification. */
function outcomeWords({ action, decision, verdict, reason }: JsonObject): string[] {
  const words = [action ?? decision ?? verdict, reason === 'timeout' ? reason : undefined];
  return words.filter((word): word is string => typeof word === 'string' && word !== '');
}

function names({ type, expression = '', right }: EdgeCondition, word: string): boolean {
  if (type === 'expression') return expression.includes(`"${word}"`) || expression.includes(`'${word}'`);
  if (type === 'regex') return String(right).includes(word);
  return (type === 'equals' || type === 'contains') && right === word;
}

function asGranted(outputs: JsonObject): JsonObject {
  const isVerification = outputs.action === undefined && outputs.decision === undefined;
  return {
    ...outputs,
    ...(outputs.action === undefined ? {} : { action: 'accept' }),
    ...(outputs.decision === undefined ? {} : { decision: 'granted' }),
    ...(isVerification ? { verdict: 'pass', satisfied: true, open: [] } : {}),
  };
}
