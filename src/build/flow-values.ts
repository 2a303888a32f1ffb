import type { EdgeCondition, PortValue, TriggerRule } from '../protocol/running/workflows.ts';

/** A value that a run will have: an output of a step, a variable or an expression. */
export class Value<T> {
  readonly source: PortValue;
  /** Carries the type only; it is never set. In a list, because a member that may be missing takes `undefined` too. */
  declare readonly type?: readonly [T];

  constructor(source: PortValue) {
    this.source = source;
  }
}

/** A variable of a workflow. */
export class Variable<T> extends Value<T> {
  readonly name: string;

  constructor(name: string, isOptional: boolean) {
    super({ type: 'variable', variableName: name, ...(isOptional ? { optional: true } : {}) });
    this.name = name;
  }
}

/** A node of a workflow in code; `Outputs` are the types of its outputs, by name. */
export class Step<Outputs> {
  readonly id: string;
  /** Carries the type only; it is never set. */
  declare readonly type?: Outputs;

  constructor(id: string) {
    this.id = id;
  }

  /** An output of this step. The step that uses it starts after this one. */
  output<K extends keyof Outputs & string>(name: K): Value<Outputs[K]> {
    return new Value({ type: 'connection', nodeId: this.id, outputKey: name });
  }
}

/** A transition from one step to the next, taken only if its condition or trigger rule holds. */
export class Transition {
  readonly from: Step<unknown>;
  readonly condition: EdgeCondition | undefined;
  readonly triggerRule: TriggerRule | undefined;

  constructor(from: Step<unknown>, { condition, triggerRule }: Partial<Pick<Transition, 'condition' | 'triggerRule'>>) {
    this.from = from;
    this.condition = condition;
    this.triggerRule = triggerRule;
  }
}

/** The value of a CEL expression over `variables`, `nodes` and `inputs`. Its type is yours to say. */
export function cel<T = never>(expression: string): Value<T> {
  return new Value({ type: 'expression', expression });
}

/** After a step, if a CEL expression is true; the next step is skipped otherwise. */
export function when(step: Step<unknown>, expression: string): Transition {
  return new Transition(step, { condition: { type: 'expression', expression } });
}

/** After a step that failed. */
export function ifFailed(step: Step<unknown>): Transition {
  return new Transition(step, { triggerRule: 'any_failed' });
}

/** After a step, however it ended. */
export function ended(step: Step<unknown>): Transition {
  return new Transition(step, { triggerRule: 'all_complete' });
}
