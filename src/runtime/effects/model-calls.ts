import { allowanceOf, refuseCall } from '../../engine/models/budget.ts';
import { isTerminal, type Run } from '../../engine/run/run.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import { NodeFailure } from '../node-type.ts';
import type { Firing } from './firing.ts';
import { type ModelResult, OverBudget } from './model.ts';

/** One model call of a node. */
interface ModelCall {
  readonly nodeId: string;
  /** How many calls of this attempt came before; a repeated attempt makes the same calls in the same order. */
  readonly place: number;
  /** Resolves once all earlier events are stored. */
  readonly written: () => Promise<void>;
  readonly perform: (more: Pick<Firing, 'allowance'>) => Promise<ModelResult>;
  readonly say: (event: NewEvent) => void;
}

/**
 * The model calls of one run: each stays within the budget, and its usage is recorded once. With a budget they are made
 * one after the other, because what is left depends on the call before.
 */
export class ModelCalls {
  readonly #run: () => Run;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(run: () => Run) {
    this.#run = run;
  }

  async call(call: ModelCall): Promise<ModelResult> {
    if (!this.#run().facts.configurable.budget) return this.#make(call);
    const made = this.#turn.then(() => this.#make(call));
    this.#turn = made.catch(() => {});
    return made;
  }

  async #make({ nodeId, place, written, perform, say }: ModelCall): Promise<ModelResult> {
    await written();
    const run = this.#run();
    if (isTerminal(run) || run.failure?.abort) throw stopped('The run is ending; no more model calls are made.');
    const { modelCalls = 0 } = run.nodes[run.plan.node(nodeId)!.index]!;
    const isRecorded = place < modelCalls;
    try {
      const allowance = allowanceOf(run);
      const result = await perform(allowance ? { allowance } : {});
      if (!isRecorded && result.usage) say({ type: 'provider.usage', nodeId, payload: { ...result.usage, nodeId } });
      return { ...result, isRecorded };
    } catch (error) {
      if (!(error instanceof OverBudget)) throw error;
      for (const event of refuseCall(run, nodeId, error.dimension, error.need)) say(event);
      throw stopped(error.message);
    }
  }
}

function stopped(message: string): NodeFailure {
  return new NodeFailure({ code: 'budget_exhausted', message, retryable: false });
}
