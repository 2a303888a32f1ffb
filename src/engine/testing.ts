import type { RunError } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent, RunEvent } from '../protocol/running/events.ts';
import type { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { makePlan, type Plan } from './definition/plan.ts';
import { type InterruptRequest, resolveInterrupt, suspendNode } from './people/interrupts.ts';
import type { Resolver } from './people/question.ts';
import { withCausationId } from './run/causation.ts';
import { apply, fold } from './run/fold.ts';
import { next, type Step } from './run/next.ts';
import { completeNode, failAttempt, type NodeResult } from './run/outcome.ts';
import { emptyRun, type Run, type RunFacts } from './run/run.ts';

/** Helpers for the engine's tests: a run that the test advances step by step, without a host. */

const APPROVAL: InterruptRequest = {
  kind: 'approval',
  data: { artifactId: 'a', artifactType: 'text', title: 'Approve', actions: ['accept', 'reject'] },
};

const SOMEBODY: Resolver = {
  principal: 'ada',
  mayNameVoters: false,
  hasScope: () => false,
  hasRole: () => false,
  hasGroup: () => false,
};

/** When the runs of tests are created. */
export const NOW = Date.parse('2026-01-01T00:00:00Z');

/** Run facts with defaults, overridden by `more`. */
export function factsOf(more: Partial<RunFacts> = {}): RunFacts {
  return {
    runId: 'run-1',
    workflowId: 'wf',
    owner: { tenant: 'alpha', principal: 'somebody' },
    inputs: {},
    configurable: {},
    createdAt: NOW,
    engineVersion: 1,
    limits: { maxNodeExecutions: 1_000, maxRunDurationMs: 1_000_000_000 },
    ...more,
  };
}

/** An event with the id, sequence and timestamp that the log would give it. */
export function logged(event: NewEvent, sequence: number, time: number): RunEvent {
  return {
    ...event,
    eventId: `evt-${sequence}`,
    runId: 'run-1',
    sequence,
    timestamp: new Date(time).toISOString(),
    schemaVersion: 1,
    engineVersion: '1',
  } as RunEvent;
}

/** A run with its log and clock. Every event is recorded and applied at once, as a host would do it. */
export class TestRun {
  readonly plan: Plan;
  readonly facts: RunFacts;
  readonly run: Run;
  readonly events: RunEvent[] = [];
  /** The serialized log, unaffected by later changes to objects in memory. */
  readonly #log: string[] = [];
  now: number;

  constructor(definition: WorkflowDefinition, facts: Partial<RunFacts> = {}) {
    this.plan = makePlan(definition, 1);
    this.facts = factsOf(facts);
    this.run = emptyRun(this.plan, this.facts);
    this.now = this.facts.createdAt;
    this.record({ type: 'run.started', payload: { workflowId: definition.id } });
  }

  /** Appends events to the log and applies them to the run. */
  record(...events: readonly NewEvent[]): this {
    for (const event of events) {
      const recorded = logged(withCausationId(this.run, event), this.run.sequence + 1, this.now);
      this.#log.push(JSON.stringify(recorded));
      apply(this.run, recorded);
      this.events.push(recorded);
    }
    return this;
  }

  /** Executes what the scheduler says is next: records the events and starts the nodes. */
  step(slots = 8): Step {
    const step = next(this.run, this.now, slots);
    this.record(...step.events);
    for (const { node } of step.start) this.start(node.id);
    return step;
  }

  /** Steps until only an outcome, time or a person can advance the run. */
  settle(slots = 8): this {
    for (let count = 0; count < 1_000; count++) {
      const { events, start } = this.step(slots);
      if (events.length + start.length === 0) return this;
    }
    throw new Error('the scheduler did not come to rest within 1000 steps');
  }

  start(nodeId: string): this {
    const { node, index } = this.plan.node(nodeId)!;
    const { attempt } = this.run.nodes[index]!;
    return this.record({ type: 'node.started', nodeId, payload: { nodeId, typeId: node.typeId, attempt } });
  }

  complete(nodeId: string, outputs?: JsonObject): this {
    return this.finish(nodeId, outputs ? { outputs } : {});
  }

  finish(nodeId: string, result: NodeResult): this {
    return this.record(...completeNode(this.run, nodeId, result, this.now));
  }

  fail(nodeId: string, error: Partial<RunError> = {}): this {
    return this.record(failAttempt(this.run, nodeId, { code: 'broken', message: 'It broke.', ...error }));
  }

  suspend(nodeId: string, interruptId: string, request: InterruptRequest = APPROVAL): this {
    return this.record(...suspendNode(this.run, nodeId, request, interruptId));
  }

  /** Answers what a node asks, as somebody without any role, and completes it with the answer. */
  answer(nodeId: string, given: { readonly action: string }): this {
    const decision = resolveInterrupt(this.run, nodeId, given, SOMEBODY);
    if (!Array.isArray(decision)) throw new Error('the answer was refused');
    return this.record(...decision).complete(nodeId, { ...given });
  }

  dispatch(nodeId: string, childRunId = 'run-child'): this {
    return this.record({ type: 'node.dispatched', nodeId, payload: { childRunId, childWorkflowId: 'child' } });
  }

  status(nodeId: string): string {
    return this.run.nodes[this.plan.node(nodeId)!.index]!.status;
  }

  /** Node ids with their statuses. */
  get statuses(): Record<string, string> {
    return Object.fromEntries(this.plan.nodes.map(({ node, index }) => [node.id, this.run.nodes[index]!.status]));
  }

  /** Types of all events so far, followed by the node id for node events. */
  get eventLabels(): string[] {
    return this.events.map(({ type, nodeId }) => (nodeId === undefined ? type : `${type} ${nodeId}`));
  }

  /** Payload of the last event of a type. */
  last<T extends RunEvent['type']>(type: T): RunEvent<T>['payload'] | undefined {
    return this.events.findLast((event) => event.type === type)?.payload as RunEvent<T>['payload'] | undefined;
  }

  /** The run as folded from its serialized log, which is what another host would see. */
  replayed(): Run {
    return fold(
      this.plan,
      this.facts,
      this.#log.map((body) => JSON.parse(body) as RunEvent),
    );
  }
}

/** The complete state of a run as plain values, for comparison. */
export function stateOf(run: Run): JsonObject {
  const {
    plan: _plan,
    facts: _facts,
    ready,
    toSkip,
    active,
    outputs,
    variables,
    channels,
    pins,
    warnings,
    ...rest
  } = run;
  return structuredClone({
    ...rest,
    ready: [...ready],
    toSkip: [...toSkip],
    active: [...active],
    outputs: { ...outputs },
    variables: { ...variables },
    channels: [...channels],
    pins: [...pins],
    warnings: [...warnings],
  });
}
