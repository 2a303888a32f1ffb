import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { edge, node, variable, workflow } from '../../../test/support/definitions.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { isTerminalEvent, type RunEvent } from '../../protocol/running/events.ts';
import {
  type EdgeCondition,
  TRIGGER_RULES,
  type TriggerRule,
  type WorkflowDefinition,
  type WorkflowEdge,
} from '../../protocol/running/workflows.ts';
import { stateOf, TestRun } from '../testing.ts';
import { cancelRun, pauseRun, resumeRun } from './commands.ts';
import type { Decision } from './decision.ts';
import { fold } from './fold.ts';
import { dueAt, next } from './next.ts';
import type { NodeResult } from './outcome.ts';
import { isTerminal, type RunLimits } from './run.ts';
import { snapshotOf } from './snapshot.ts';

/**
 * Goal: invariants for every history of every small graph. Method: generated graphs, outcomes and commands; the
 * engine's events are checked against a second, slow and simple implementation of the rules.
 */

describe('whatever the graph, the outcomes and the commands', () => {
  it('replaying the log gives the run that was folded live, at any point', () => {
    check(history(), ({ graph, script, rest }) => {
      const story = play(graph, script);
      expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
      bringToAnEnd(story, rest);
      expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
      const digest = (text: string): string => text;
      expect(snapshotOf(story.replayed(), digest)).toEqual(snapshotOf(story.run, digest));
    });
  });

  it('replaying also gives the same variables and channels, and what nodes read and output of them', () => {
    check(fc.tuple(history(), fc.array(keeping(), { minLength: 1 })), ([{ graph, script, rest }, kept]) => {
      const story = play(keepingBooks(graph), [], undefined);
      const writing = script.map((each, index) =>
        each.kind === 'settle' && !('retryable' in each.outcome)
          ? { ...each, outcome: { ...each.outcome, ...kept[index % kept.length] } }
          : each,
      );
      for (const each of writing) if (!isTerminal(story.run)) act(story, each);
      expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
      bringToAnEnd(story, [...kept, ...rest]);
      expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
    });
  });

  it('the run ends if every started node settles', () => {
    check(history(), ({ graph, script, rest }) => {
      const story = bringToAnEnd(play(graph, script), rest);
      expect(story.run.ended).toBeDefined();
    });
  });

  it('there is one terminal event, it is the last, and every command after it is refused', () => {
    check(history(), ({ graph, script, rest }) => {
      const story = bringToAnEnd(play(graph, script), rest);
      expect(story.events.filter(({ type }) => isTerminalEvent(type))).toHaveLength(1);
      expect(isTerminalEvent(story.events.at(-1)!.type)).toBe(true);
      expect(next(story.run, story.now + 10 ** 12, 8)).toEqual({ events: [], start: [] });
      for (const refusal of commandsOn(story)) expect(refusal).toMatchObject({ refused: 'run_terminal' });
    });
  });

  it('every node settles at most once, and nothing is in flight after the end of the run', () => {
    check(history(), ({ graph, script, rest }) => {
      const story = bringToAnEnd(play(graph, script), rest);
      const ends = story.events.filter(({ type }) => ENDS.includes(type)).map(({ nodeId }) => nodeId);
      expect(new Set(ends).size).toBe(ends.length);
      expect([...story.run.active]).toEqual([]);
    });
  });

  it('a node starts or is skipped only as its rule says for its upstream results', () => {
    check(history(), ({ graph, script, rest }) => {
      const story = bringToAnEnd(play(graph, script), rest);
      const judge = new Judge(graph);
      for (const event of story.events) {
        const { nodeId, type } = event;
        if (type === 'node.started') expect(judge.mayStart(nodeId!), `start of ${nodeId}`).toBe(true);
        if (type === 'node.skipped') expect(judge.mustSkip(nodeId!), `skip of ${nodeId}`).toBe(true);
        judge.hear(event);
      }
      if (story.run.ended !== 'completed') return;
      // A run may complete only if no node was still to be started.
      for (const { id } of graph.definition.nodes) expect(judge.cameToAnEnd(id), id).toBe(true);
    });
  });

  it('a node under a waiting rule starts after all its upstreams, and nodes started together are in topological order', () => {
    check(history(), ({ graph, script, rest }) => {
      const story = bringToAnEnd(play(graph, script), rest);
      const ended = new Set<string>();
      for (const { type, nodeId } of story.events) {
        if (ENDS.includes(type)) ended.add(nodeId!);
        if (type !== 'node.started') continue;
        const sources = incoming(graph.definition, nodeId!).map(({ sourceNodeId }) => sourceNodeId);
        const waits = !['any_success', 'any_failed'].includes(ruleOf(graph.definition, nodeId!));
        const settled = sources.filter((id) => ended.has(id));
        expect(waits ? settled.length === sources.length : sources.length === 0 || settled.length > 0).toBe(true);
      }
    });
    check(history(), ({ graph, script }) => {
      const { run, now } = play(graph, script);
      const fresh = next(run, now, 8).start.filter(({ index }) => run.nodes[index]!.status === 'ready');
      expect(fresh.map(({ order }) => order)).toEqual(fresh.map(({ order }) => order).toSorted((a, b) => a - b));
    });
  });

  it('if there is nothing to do now, the due time is in the future', () => {
    check(history(), ({ graph, script, rest }) => {
      const story = play(graph, script);
      const look = (): void => {
        const { events, start } = next(story.run, story.now, 8);
        const due = dueAt(story.run);
        if (events.length + start.length === 0 && due !== undefined) expect(due).toBeGreaterThan(story.now);
      };
      look();
      bringToAnEnd(story, rest, look);
    });
  });

  it('events of unknown types change nothing, wherever they are', () => {
    const types = fc.stringMatching(/^[a-z]{1,8}(\.[a-z]{1,8}){1,3}$/);
    check(
      fc.tuple(history(), fc.array(fc.tuple(fc.nat(), types, fc.jsonValue()))),
      ([{ graph, script }, strangers]) => {
        const story = play(graph, script);
        const events = [...story.events];
        // Any event after the end of a run is refused, known or not.
        const end = isTerminal(story.run) ? events.length : events.length + 1;
        const known = new Set<string>(story.events.map(({ type }) => type));
        for (const [place, type, payload] of strangers) {
          if (known.has(type)) continue;
          events.splice(place % end, 0, { ...events[0]!, type, payload, eventId: 'evt-x' } as unknown as RunEvent);
        }
        const renumbered = events.map((event, sequence) => ({ ...event, sequence }) as RunEvent);
        const { sequence: _s, updatedAt: _u, ...state } = stateOf(fold(story.plan, story.facts, renumbered));
        const { sequence, updatedAt: _v, ...expected } = stateOf(story.run);
        expect(sequence).toBe(story.events.length - 1);
        expect(state).toStrictEqual(expected);
      },
    );
  });
});

describe('whatever the limits', () => {
  const limits = fc.record({
    maxNodeExecutions: fc.integer({ min: 1, max: 6 }),
    maxRunDurationMs: fc.integer({ min: 1, max: 400 }),
  });

  it('a cap is breached at most once, with more observed than allowed, and then nothing starts', () => {
    check(fc.tuple(history(), limits), ([{ graph, script, rest }, given]) => {
      const story = bringToAnEnd(play(graph, script, given), rest);
      const starts = story.events.filter(({ type }) => type === 'node.started');
      expect(starts.length).toBeLessThanOrEqual(given.maxNodeExecutions);
      const place = story.events.findIndex(({ type }) => type === 'cap.breached');
      if (place < 0) return;
      const { payload } = story.events[place] as RunEvent<'cap.breached'>;
      expect(payload.observed).toBeGreaterThan(payload.limit);
      const after = story.events.slice(place + 1).map(({ type }) => type);
      expect(after).not.toContain('node.started');
      expect(after).not.toContain('cap.breached');
      expect(after).not.toContain('run.completed');
      if (story.run.ended === 'cancelled') return;
      expect(after.at(-1)).toBe('run.failed');
      const code = payload.kind === 'run-duration' ? 'run_timeout' : 'recursion_limit_exceeded';
      expect(story.run.error?.code).toBe(code);
    });
  });
});

const ENDS: readonly string[] = ['node.completed', 'node.failed', 'node.skipped', 'node.cancelled'];
const NODE_NAMES = ['f', 'b', 'e', 'a', 'd', 'c'];

function check<T>(arbitrary: fc.Arbitrary<T>, property: (value: T) => void): void {
  fc.assert(fc.property(arbitrary, property), { numRuns: 250 });
}

// ---- Generators.

/** A condition with an independent implementation of it. */
interface Condition {
  readonly condition?: EdgeCondition;
  holds(outputs: JsonObject): boolean;
}

const CONDITIONS: readonly Condition[] = [
  { holds: () => true },
  { holds: () => true },
  { condition: { type: 'truthy', left: 'ok' }, holds: ({ ok }) => ok === true },
  { condition: { type: 'falsy', left: 'ok' }, holds: ({ ok }) => ok !== true },
  { condition: { type: 'equals', left: 'v', right: 1 }, holds: ({ v }) => v === 1 },
  { condition: { type: 'notEquals', left: 'v', right: 1 }, holds: ({ v }) => v !== 1 },
  { condition: { type: 'expression', expression: 'output.v > 1' }, holds: ({ v }) => typeof v === 'number' && v > 1 },
  { condition: { type: 'expression', expression: 'output.nobody.knows == 1' }, holds: () => false },
];

interface Graph {
  readonly definition: WorkflowDefinition;
  /** Condition of each edge, by its id. */
  readonly conditions: ReadonlyMap<string, Condition>;
}

function graph(): fc.Arbitrary<Graph> {
  const link = fc.record({
    from: fc.nat(),
    to: fc.nat(),
    rule: fc.option(fc.constantFrom(...TRIGGER_RULES), { nil: undefined, freq: 3 }),
    condition: fc.nat({ max: CONDITIONS.length - 1 }),
  });
  const one = fc.record({
    disabled: fc.integer({ min: 0, max: 6 }).map((chance) => chance === 0),
    maxRetries: fc.integer({ min: 0, max: 2 }),
    delayMs: fc.integer({ min: 0, max: 100 }),
  });
  return fc
    .tuple(fc.array(one, { minLength: 1, maxLength: NODE_NAMES.length }), fc.array(link, { maxLength: 10 }))
    .map(([nodes, links]) => {
      // Edges go from earlier to later nodes, so there is no cycle; names are in no such order.
      const edges = links.flatMap(({ from, to, rule, condition }, index) => {
        const [source, target] = [from % nodes.length, to % nodes.length].toSorted((a, b) => a - b) as [number, number];
        if (source === target) return [];
        const more = {
          id: `e${(index * 7) % 10}`,
          ...(rule ? { triggerRule: rule } : {}),
          ...(CONDITIONS[condition]!.condition ? { condition: CONDITIONS[condition]!.condition } : {}),
        };
        return [{ edge: edge(NODE_NAMES[source]!, NODE_NAMES[target]!, more), condition: CONDITIONS[condition]! }];
      });
      const definition = workflow(
        nodes.map(({ disabled, ...retry }, index) =>
          node(NODE_NAMES[index]!, 'core.noop', { disabled, settings: { retry } }),
        ),
        edges.map((each) => each.edge),
      );
      return { definition, conditions: new Map(edges.map((each) => [each.edge.id, each.condition])) };
    });
}

interface Completed extends Omit<NodeResult, 'outputs'> {
  readonly outputs?: JsonObject;
  /** The node outputs its inputs. */
  readonly isEcho?: boolean;
}

type Outcome = Completed | { readonly retryable: boolean };

type Action =
  | { readonly kind: 'step'; readonly slots: number }
  | { readonly kind: 'settle'; readonly pick: number; readonly outcome: Outcome }
  | { readonly kind: 'dispatch'; readonly pick: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'command'; readonly command: number };

function outcome(): fc.Arbitrary<Outcome> {
  const outputs = fc.record({ ok: fc.boolean(), v: fc.integer({ min: 0, max: 3 }) }, { requiredKeys: [] });
  return fc.oneof(
    { weight: 5, arbitrary: outputs.map((given) => ({ outputs: given as JsonObject })) },
    { weight: 1, arbitrary: fc.constant({}) },
    { weight: 3, arbitrary: fc.boolean().map((retryable) => ({ retryable })) },
  );
}

function action(): fc.Arbitrary<Action> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('step' as const), slots: fc.integer({ min: 1, max: 4 }) }) },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('settle' as const), pick: fc.nat(), outcome: outcome() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('dispatch' as const), pick: fc.nat() }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 200 }) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('command' as const), command: fc.nat({ max: 9 }) }) },
  );
}

/** What a node may write to variables and channels, and whether it outputs what it read of them. */
function keeping(): fc.Arbitrary<Completed> {
  const value = fc.oneof(
    fc.integer({ min: 0, max: 3 }),
    fc.constantFrom({ userId: 'ada' }, { a: 1 }, { b: [2] }, null, 'x'),
  );
  const channel = fc.constantFrom('list', 'object', 'count', 'votes', 'loose');
  return fc.record(
    {
      isEcho: fc.boolean(),
      variables: fc.dictionary(fc.constantFrom('v', 'w'), value, { maxKeys: 2 }),
      channels: fc.array(fc.record({ channel, value, reducer: fc.constant('append') }), { maxLength: 3 }),
    },
    { requiredKeys: ['isEcho'] },
  );
}

/** The graph with channels, and with nodes that read them and variables. */
function keepingBooks({ definition, conditions }: Graph): Graph {
  const names = ['v', 'w', 'list', 'object', 'count', 'votes', 'loose'];
  const inputs = Object.fromEntries(names.map((name) => [name, variable(name, true)]));
  return {
    conditions,
    definition: {
      ...definition,
      nodes: definition.nodes.map((each) => ({ ...each, inputs })),
      channels: {
        list: { reducer: 'append', maxSize: 4 },
        object: { reducer: 'merge' },
        count: { reducer: 'counter' },
        votes: { reducer: 'votes', ttlMs: 100 },
      },
    },
  };
}

interface History {
  readonly graph: Graph;
  readonly script: readonly Action[];
  /** Outcomes of the nodes that are still running when the script ends. */
  readonly rest: readonly Outcome[];
}

function history(): fc.Arbitrary<History> {
  return fc.record({
    graph: graph(),
    script: fc.array(action(), { maxLength: 40 }),
    rest: fc.array(outcome(), { minLength: 1, maxLength: 5 }),
  });
}

// ---- A minimal host: asks the scheduler, executes the step, and lets things happen.

function play({ definition }: Graph, script: readonly Action[], limits?: RunLimits): TestRun {
  const story = new TestRun(definition, limits ? { limits } : {});
  for (const each of script) {
    if (isTerminal(story.run)) break;
    act(story, each);
  }
  return story;
}

function act(story: TestRun, { kind, ...given }: Action): void {
  const busy = busyNodes(story);
  const { slots, pick, ms, command } = given as { slots: number; pick: number; ms: number; command: number };
  const chosen = busy[pick % busy.length];
  if (kind === 'step') story.step(Math.max(1, slots));
  else if (kind === 'wait') story.now += ms;
  else if (kind === 'command') decide(story, command);
  else if (chosen === undefined) return;
  else if (kind === 'dispatch') {
    if (story.status(chosen) === 'running') story.dispatch(chosen);
  } else settle(story, chosen, (given as { outcome: Outcome }).outcome);
}

function decide(story: TestRun, command: number): void {
  const [cancel, drain, immediate, resume] = commandsOn(story) as [Decision, Decision, Decision, Decision];
  const decision = command === 0 ? cancel : command < 3 ? drain : command < 5 ? immediate : resume;
  if (Array.isArray(decision)) story.record(...decision);
}

function commandsOn({ run }: TestRun): Decision[] {
  return [
    cancelRun(run, { reason: 'enough' }),
    pauseRun(run, { drainPolicy: 'drain-current-node' }),
    pauseRun(run, { drainPolicy: 'immediate' }),
    resumeRun(run),
  ];
}

/** The outcome of an aborted attempt is ignored: its node is no longer busy. */
function settle(story: TestRun, nodeId: string, given: Outcome): void {
  // A paused run records no outcome: the host would try again after the resume.
  if (story.run.pause) return;
  if ('retryable' in given) {
    story.fail(nodeId, { retryable: given.retryable });
    return;
  }
  const { isEcho, ...result } = given;
  const { declared } = story.run.nodes[story.plan.node(nodeId)!.index]!.inputs!;
  story.finish(nodeId, isEcho ? { ...result, outputs: { ...result.outputs, ...declared } } : result);
}

function busyNodes({ plan, run }: TestRun): string[] {
  return [...run.active]
    .filter((index) => ['running', 'waiting'].includes(run.nodes[index]!.status))
    .map((index) => plan.nodes[index]!.node.id);
}

const TURNS_MAX = 2_000;

/** Resumes the run and settles every running node until the run ends. */
function bringToAnEnd(story: TestRun, outcomes: readonly Outcome[], look: () => void = () => {}): TestRun {
  for (let turn = 0; turn < TURNS_MAX && !isTerminal(story.run); turn++) {
    if (story.run.pause) story.record(...(resumeRun(story.run) as readonly []));
    look();
    const { events, start } = story.step();
    if (events.length + start.length > 0) continue;
    const [busy] = busyNodes(story);
    if (busy !== undefined) settle(story, busy, outcomes[turn % outcomes.length]!);
    else waitForTime(story);
  }
  return story;
}

/** With nothing in flight, a waiting run must be waiting for a time in the future. */
function waitForTime(story: TestRun): void {
  const retries = story.run.nodes.filter(({ status }) => status === 'retrying');
  expect(retries.length, 'a run that waits for nobody').toBeGreaterThan(0);
  const due = dueAt(story.run)!;
  expect(due).toBeGreaterThan(story.now);
  story.now = due;
}

// ---- A second implementation of the rules, from the log alone.

type Came = 'open' | 'succeeded' | 'failed' | 'skipped';

class Judge {
  readonly #graph: Graph;
  readonly #ends = new Map<string, { readonly type: string; readonly outputs: JsonObject }>();

  constructor(given: Graph) {
    this.#graph = given;
  }

  hear({ type, nodeId, payload }: RunEvent): void {
    if (!ENDS.includes(type)) return;
    this.#ends.set(nodeId!, { type, outputs: (payload as { outputs?: JsonObject }).outputs ?? {} });
  }

  cameToAnEnd(nodeId: string): boolean {
    return this.#ends.has(nodeId);
  }

  mayStart(nodeId: string): boolean {
    return !this.#isDisabled(nodeId) && this.#fires(nodeId);
  }

  mustSkip(nodeId: string): boolean {
    if (this.#isDisabled(nodeId) && this.#fires(nodeId)) return true;
    const edges = this.#edgesInto(nodeId);
    const isOver = !edges.includes('open');
    const verdicts: Record<TriggerRule, boolean> = {
      all_success: isOver && (edges.includes('failed') || !edges.includes('succeeded')),
      any_success: isOver && !edges.includes('succeeded'),
      all_complete: false,
      none_failed: edges.includes('failed'),
      any_failed: isOver && !edges.includes('failed'),
    };
    return edges.length > 0 && verdicts[ruleOf(this.#graph.definition, nodeId)];
  }

  #fires(nodeId: string): boolean {
    const edges = this.#edgesInto(nodeId);
    const isOver = !edges.includes('open');
    const verdicts: Record<TriggerRule, boolean> = {
      all_success: isOver && !edges.includes('failed') && edges.includes('succeeded'),
      any_success: edges.includes('succeeded'),
      all_complete: isOver,
      none_failed: isOver && !edges.includes('failed'),
      any_failed: edges.includes('failed'),
    };
    return edges.length === 0 || verdicts[ruleOf(this.#graph.definition, nodeId)];
  }

  #isDisabled(nodeId: string): boolean {
    return this.#graph.definition.nodes.find(({ id }) => id === nodeId)!.disabled === true;
  }

  #edgesInto(nodeId: string): Came[] {
    return incoming(this.#graph.definition, nodeId).map((each) => this.#cameOf(each));
  }

  #cameOf({ id, sourceNodeId }: WorkflowEdge): Came {
    const end = this.#ends.get(sourceNodeId);
    const { condition, holds } = this.#graph.conditions.get(id)!;
    if (!end) return 'open';
    if (end.type === 'node.failed') return 'failed';
    if (end.type === 'node.skipped') return condition?.type === 'falsy' ? 'succeeded' : 'skipped';
    return holds(end.outputs) ? 'succeeded' : 'skipped';
  }
}

function incoming({ edges }: WorkflowDefinition, nodeId: string): WorkflowEdge[] {
  return edges.filter(({ targetNodeId }) => targetNodeId === nodeId);
}

function ruleOf(definition: WorkflowDefinition, nodeId: string): TriggerRule {
  const [first] = incoming(definition, nodeId).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return first?.triggerRule ?? 'all_success';
}
