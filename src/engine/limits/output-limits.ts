import type { NewEvent } from '../../protocol/running/events.ts';
import type { InterruptRequest } from '../people/interrupts.ts';
import type { NodeResult } from '../run/outcome.ts';
import type { Run } from '../run/run.ts';
import { OutputBudget } from './output-budget.ts';

/** How much a run may hold, in characters of JSON text. */
export interface OutputLimits {
  /** Outputs of one execution of a node. */
  readonly output: number;
  /** Value of one variable, or of one write to a channel. */
  readonly variable: number;
  /** All outputs, variables and channels together. */
  readonly state: number;
  /** All events together. */
  readonly log: number;
}

/** The limits of a host whose operator sets none. */
export const OUTPUT_LIMITS: OutputLimits = {
  output: 2_097_152,
  variable: 2_097_152,
  state: 8_388_608,
  log: 33_554_432,
};

/**
 * Checks what nodes of one run hand in, before any event is made of it. The state is measured only when it could be
 * too large: every part of it was once an event, so it cannot have grown by more than the log has.
 */
export class OutputGuard {
  readonly #limits: OutputLimits;
  /** The state as it was last measured, and how long the log was then. */
  #measured: { readonly state: number; readonly log: number } | undefined;

  constructor(limits: OutputLimits) {
    this.#limits = limits;
  }

  /** A budget for building the outputs of one call. */
  forOutput(): OutputBudget {
    return new OutputBudget('The output', this.#limits.output);
  }

  /** Throws OutputLimitExceeded if the result of a node is too large for the node, its variables or its run. */
  checkResult(run: Run, { outputs, variables = {}, channels = [] }: NodeResult): void {
    let grown = 0;
    const measure = (what: string, max: number, value: unknown): void => {
      const budget = new OutputBudget(what, max);
      budget.takeJson(value);
      grown += budget.taken;
    };
    if (outputs) measure('The output', this.#limits.output, outputs);
    for (const [name, value] of Object.entries(variables)) {
      measure(`The variable ${JSON.stringify(name)}`, this.#limits.variable, value);
    }
    for (const { channel, value } of channels) {
      measure(`The write to channel ${JSON.stringify(channel)}`, this.#limits.variable, value);
    }
    this.#checkLog(run, grown);
    this.#checkState(run, grown);
  }

  /** Throws OutputLimitExceeded if a question is too large for its node or the log. */
  checkQuestion(run: Run, { data }: InterruptRequest): void {
    const budget = this.forOutput();
    budget.takeJson(data);
    this.#checkLog(run, budget.taken);
  }

  /** Throws OutputLimitExceeded if the log has no room for events that a node records while it runs. */
  checkEvents(run: Run, events: readonly NewEvent[]): void {
    const budget = new OutputBudget('The log of the run', this.#limits.log, run.logCharacters);
    for (const { payload } of events) budget.takeJson(payload);
  }

  #checkLog(run: Run, grown: number): void {
    new OutputBudget('The log of the run', this.#limits.log, run.logCharacters).take(grown);
  }

  /** What a node replaces counts until then, because both are in memory. */
  #checkState(run: Run, grown: number): void {
    if (grown === 0 || this.#atMost(run) + grown <= this.#limits.state) return;
    const budget = new OutputBudget('The state of the run', this.#limits.state);
    for (const part of [run.outputs, run.variables, Object.fromEntries(run.channels)]) budget.takeJson(part);
    this.#measured = { state: budget.taken, log: run.logCharacters };
    budget.take(grown);
  }

  /** What the state has at most. */
  #atMost({ logCharacters }: Run): number {
    if (!this.#measured) return Number.POSITIVE_INFINITY;
    return this.#measured.state + logCharacters - this.#measured.log;
  }
}
