import { deepEqual, defined, isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import type { RunEvent } from '../../protocol/running/events.ts';
import type { RunSnapshot } from '../../protocol/running/runs.ts';
import { type Digest, maskOutputs, maskValue } from '../masking/mask.ts';
import { type Cost, Spending } from '../models/spending.ts';
import { apply } from '../run/fold.ts';
import type { Run } from '../run/run.ts';
import { snapshotOf } from '../run/snapshot.ts';

/** The state of a run to compare: its masked snapshot, and the inputs that each node got last. */
export interface ComparedRun {
  readonly snapshot: RunSnapshot;
  /** Inputs of each node's last attempt, masked, by node id. */
  readonly inputs: ReadonlyMap<string, JsonObject>;
  readonly durationMs: number | undefined;
  readonly cost: Cost | null;
}

/**
 * Applies a log to a run and collects what a comparison needs, because the run itself drops a node's inputs when it
 * settles.
 */
export class ComparedRunBuilder {
  readonly #run: Run;
  readonly #digest: Digest;
  readonly #inputs = new Map<string, JsonObject>();
  readonly #spending = new Spending();

  constructor(run: Run, digest: Digest) {
    this.#run = run;
    this.#digest = digest;
  }

  /** Applies the next event of the log. */
  add(event: RunEvent): void {
    apply(this.#run, event);
    if (event.type === 'provider.usage') this.#spending.add(event.payload);
    if (event.type !== 'node.started') return;
    const { nodeId } = event.payload;
    this.#inputs.set(nodeId, shownInputs(this.#run, nodeId, this.#digest));
  }

  /** The result, after the last event. */
  comparedRun(): ComparedRun {
    const { startedAt, endedAt } = this.#run;
    return {
      snapshot: snapshotOf(this.#run, this.#digest),
      inputs: this.#inputs,
      durationMs: startedAt === undefined || endedAt === undefined ? undefined : endedAt - startedAt,
      cost: this.#spending.cost,
    };
  }
}

/**
 * Masks ports that receive sensitive values. If anything in the workflow is sensitive, results of expressions are
 * masked too, because they may derive from it.
 */
function shownInputs({ plan, nodes, known }: Run, nodeId: string, digest: Digest): JsonObject {
  const { node, index } = plan.node(nodeId)!;
  const given = maskOutputs(plan, nodeId, nodes[index]!.inputs?.all ?? {}, digest);
  if (plan.sensitive.size === 0) return known ? known.mask(given) : given;
  const shown = Object.entries(given).map(([port, value]) => [
    port,
    own(node.inputs, port)?.type === 'expression' ? maskValue(value, plan.maskingMode, digest) : value,
  ]);
  const masked = Object.fromEntries(shown.filter(([, value]) => value !== undefined));
  return known ? known.mask(masked) : masked;
}

/** The values of both runs; a missing value is omitted. */
interface Sides {
  readonly a?: unknown;
  readonly b?: unknown;
}

/** How the states of two runs differ; empty if they do not. */
export function diffStates(a: ComparedRun, b: ComparedRun): JsonObject {
  return defined({
    status: sides(a.snapshot.status, b.snapshot.status),
    error: sides(a.snapshot.error, b.snapshot.error),
    variables: members(a.snapshot.variables, b.snapshot.variables),
    channels: members(a.snapshot.channels, b.snapshot.channels),
    nodes: diffNodes(a, b),
  });
}

/** How duration and token usage of two runs differ; reported only for runs whose states differ. */
export function diffUsage(a: ComparedRun, b: ComparedRun): JsonObject {
  return defined({
    durationMs: delta(a.durationMs, b.durationMs),
    inputTokens: delta(a.cost?.tokens.input, b.cost?.tokens.input),
    outputTokens: delta(a.cost?.tokens.output, b.cost?.tokens.output),
  });
}

/** Compares status, attempt, inputs, outputs and error of each node's last attempt. */
function diffNodes(a: ComparedRun, b: ComparedRun): JsonObject | undefined {
  const nodeIds = namesOf(a.snapshot.nodeStates, b.snapshot.nodeStates);
  const diffs = nodeIds.map((nodeId): [string, JsonObject] => {
    const left = own(a.snapshot.nodeStates, nodeId);
    const right = own(b.snapshot.nodeStates, nodeId);
    return [
      nodeId,
      defined({
        status: sides(left?.status, right?.status),
        attempt: sides(left?.attempt, right?.attempt),
        inputs: members(a.inputs.get(nodeId), b.inputs.get(nodeId)),
        outputs: members(left?.outputs, right?.outputs),
        error: sides(left?.error, right?.error),
      }),
    ];
  });
  return unlessEmpty(Object.fromEntries(diffs.filter(([, diff]) => Object.keys(diff).length > 0)));
}

function members(a: unknown, b: unknown): JsonObject | undefined {
  const [left, right] = [a, b].map((values) => (isObject(values) ? values : undefined));
  const diffs = namesOf(left, right).map((name) => [name, sides(own(left, name), own(right, name))]);
  return unlessEmpty(Object.fromEntries(diffs.filter(([, diff]) => diff !== undefined)));
}

function namesOf(a: JsonObject | undefined = {}, b: JsonObject | undefined = {}): string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])];
}

function sides(a: unknown, b: unknown): Sides | undefined {
  return deepEqual(a, b) ? undefined : (defined({ a, b }) as Sides);
}

function delta(a: number | undefined, b: number | undefined): JsonObject | undefined {
  const both = sides(a, b);
  return both && defined({ ...both, delta: a === undefined || b === undefined ? undefined : b - a });
}

function unlessEmpty(values: JsonObject): JsonObject | undefined {
  return Object.keys(values).length > 0 ? values : undefined;
}
