import type { Static, TObject, TProperties } from 'typebox';
import type { WorkflowDefinition } from '../protocol/running/workflows.ts';

/** A workflow in code: the definition of the protocol, and the types of its variables. */
export interface OwnWorkflow<V extends TProperties = TProperties> extends WorkflowDefinition {
  /** Carries the type only; it is never set. */
  readonly variableTypes?: Static<TObject<V>>;
}

const places = new WeakMap<object, string>();

/** Remembers where a workflow was defined in code, beside it: the definition itself stays as the protocol has it. */
export function placedAt<T extends object>(workflow: T, place: string | undefined): T {
  if (place !== undefined) places.set(workflow, place);
  return workflow;
}

/** Where a workflow was defined in code, as `file:line:column`. */
export function definedAt(workflow: object): string | undefined {
  return places.get(workflow);
}
