import { Type } from 'typebox';
import { defineCapability } from '../../src/capabilities/capability.ts';
import { countCall } from '../../src/capabilities/operations/costs/records.ts';
import { countRating, insertAnnotation, markRun } from '../../src/capabilities/people/feedback/records.ts';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { Annotation } from '../../src/protocol/people/annotations.ts';
import type { WorkflowDefinition, WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { insertDefinition, setCurrentVersion } from '../../src/store/definitions.ts';
import { insertEvents, insertRun, type StoredEvent } from '../../src/store/log.ts';
import type { Write } from '../../src/store/sql.ts';
import { digits, firstIdAt } from '../../src/system/ids.ts';
import { chanceOf } from './chance.ts';
import { line, node, workflow } from './definitions.ts';

/**
 * The history of a tenant, as the host would have written it: three habits, and much else that recurs by chance, is done
 * by machines, or is not done often enough.
 */

const DAY_MS = 24 * 60 * 60 * 1_000;
const SPAN_DAYS = 60;
const NOISE_WORKFLOWS = 60;
const USAGE = { provider: 'acme', model: 'small', inputTokens: 100, outputTokens: 10 };
const NOISE_TYPES = Array.from({ length: 40 }, (_, index) => `vendor.noise.type${index}`);

export interface PlantedPrompt {
  readonly templateId: string;
  readonly version: string;
}

export interface Planting {
  readonly tenant: string;
  readonly runs: number;
  readonly seed: number;
  readonly until: number;
  /** One that people keep correcting, and one that they corrected twice. */
  readonly prompts: readonly [PlantedPrompt, PlantedPrompt];
}

export const PLANTED_PATH = ['vendor.habit.fetch', 'vendor.habit.clean', 'vendor.habit.rate', 'vendor.habit.send'];
/** The host's own types of the planted path: only what it can run is drafted. */
export const habitNodes = defineCapability({
  name: 'habits',
  nodes: () =>
    PLANTED_PATH.map((typeId) => ({
      typeId,
      description: 'For tests.',
      role: 'pure' as const,
      config: Type.Object({ mode: Type.String(), of: Type.String() }),
      run: () => ({ done: {} }),
    })),
  build: () => ({}),
});
export const PLANTED_WORKFLOW = 'habit-morning';

export function* plantedHistory({ tenant, runs, seed, until, prompts }: Planting): Generator<Write> {
  const chance = chanceOf(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(chance() * values.length)]!;
  const first = until - SPAN_DAYS * DAY_MS;
  const anyTime = (): number => first + Math.floor(chance() * SPAN_DAYS * DAY_MS);
  const history = new History(tenant);

  const chains = ['one', 'two', 'three'].map((name) => chainWorkflow(name));
  const morning = named(PLANTED_WORKFLOW, [node('only', 'vendor.noise.report')]);
  const speaking = named('habit-speaking', [node('speak', 'vendor.habit.speak')]);
  const noise = Array.from({ length: NOISE_WORKFLOWS }, (_, index) =>
    row(
      `noise-${index}`,
      Array.from({ length: 2 + Math.floor(chance() * 5) }, () => pick(NOISE_TYPES)),
    ),
  );
  for (const definition of [...chains, morning, speaking, ...noise]) yield* history.define(definition);

  // The habits.
  for (let count = 0; count < 40; count++) yield* history.run(pick(chains), { at: anyTime() });
  for (let day = 20; day < SPAN_DAYS; day++) {
    const at = Math.floor((first + day * DAY_MS) / DAY_MS) * DAY_MS + 7.5 * 60 * 60 * 1_000;
    const late = Math.floor((chance() - 0.5) * 10 * 60_000);
    yield* history.run(morning, { at: at + late, inputs: { region: 'north' } });
  }
  for (let count = 0; count < 30; count++) {
    const runId = history.nextId(anyTime());
    yield* history.run(speaking, { runId, prompt: prompts[0] });
    if (count < 12) yield history.correct(runId, 'speak', 'habit-speaking', `Say it in ${3 + (count % 3)} words.`);
  }

  // What is none: too few corrections, corrections of what has no prompt, what a machine starts, what goes wrong.
  for (let count = 0; count < 20; count++) {
    const runId = history.nextId(anyTime());
    yield* history.run(speaking, { runId, prompt: prompts[1] });
    if (count < 2) yield history.correct(runId, 'speak', 'habit-speaking', 'Shorter.');
  }
  for (let day = 0; day < SPAN_DAYS; day++) {
    const metadata = { scheduleId: 'sch-planted' };
    yield* history.run(pick(noise), { at: first + day * DAY_MS, metadata });
  }
  while (history.count < runs) {
    const definition = pick(noise);
    const runId = history.nextId(anyTime());
    const inputs = chance() < 0.4 ? {} : { value: Math.floor(chance() * 1e9) };
    yield* history.run(definition, { runId, inputs, isFailed: chance() < 0.1 });
    if (chance() < 0.02) yield history.correct(runId, definition.nodes[0]!.id, definition.id, 'Otherwise.');
  }
}

/** A run of the past. */
export interface PlantedRun {
  readonly at?: number;
  readonly runId?: string;
  readonly inputs?: JsonObject;
  readonly metadata?: JsonObject;
  readonly prompt?: PlantedPrompt;
  /** What its nodes gave; a sentence or two unless it says otherwise. */
  readonly outputs?: JsonObject;
  readonly isFailed?: boolean;
  readonly isCancelled?: boolean;
  readonly principal?: string;
  /** What somebody changed at a gate before they accepted it. */
  readonly edit?: { readonly gate: string; readonly before: string; readonly after: string };
  /** What the models of the run cost. */
  readonly costUsd?: number;
}

/** Writes runs and annotations as the host would have written them. */
export class History {
  readonly #tenant: string;
  count = 0;
  #made = 0;

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  nextId(at: number): string {
    return `${firstIdAt(at, 'run-')}000${digits(this.#made++, 10)}`;
  }

  *define(definition: WorkflowDefinition): Generator<Write> {
    const { id: workflow_id } = definition;
    const body = JSON.stringify(definition);
    yield insertDefinition({ owner: this.#tenant, workflow_id, version: 1, digest: 'planted', body, created_at: 0 });
    yield setCurrentVersion(this.#tenant, workflow_id, 1, 0, null);
  }

  *run(definition: WorkflowDefinition, planted: PlantedRun): Generator<Write> {
    const { at = 0, inputs = {}, metadata, isFailed, isCancelled, principal = 'planter' } = planted;
    const runId = planted.runId ?? this.nextId(at);
    const started = Number.parseInt(runId.slice(4, 13), 36);
    const events = eventsOf(runId, definition, planted);
    this.count++;
    yield insertRun({
      run_id: runId,
      tenant: this.#tenant,
      workspace: null,
      principal,
      issuer: 'urn:capstan:api-key',
      lane: 'api-key',
      workflow_owner: this.#tenant,
      workflow_id: definition.id,
      workflow_version: 1,
      parent_run_id: null,
      parent_node_id: null,
      facts: JSON.stringify({ tenantName: this.#tenant, inputs, metadata, configurable: {}, limits: {}, depth: 0 }),
      engine_version: 1,
      event_log_schema_version: 2,
      created_at: started,
      status: isFailed ? 'failed' : isCancelled ? 'cancelled' : 'completed',
      sequence: events.length - 1,
      updated_at: started,
      ended_at: started + 10,
      error_code: null,
      log_seal: null,
    });
    yield* insertEvents(runId, events);
    const spender = { tenant: this.#tenant, runId, workspace: undefined, workflowId: definition.id };
    for (const { type, body } of events)
      if (type === 'provider.usage') yield countCall(spender, JSON.parse(body).payload);
  }

  correct(runId: string, nodeId: string | undefined, workflowId: string, correction: string): Write {
    return insertAnnotation(this.#annotation(runId, workflowId, { kind: 'correction', correction }, nodeId));
  }

  *flag(runId: string, workflowId: string): Generator<Write> {
    const row = this.#annotation(runId, workflowId, { kind: 'flag' });
    yield* [markRun(row, { annotated: true, flagged: true }), insertAnnotation(row)];
  }

  *rate(runId: string, workflowId: string, rating: number): Generator<Write> {
    const row = { ...this.#annotation(runId, workflowId, { kind: 'rating', rating }), rating };
    yield* [markRun(row, { annotated: true }), countRating(row), insertAnnotation(row)];
  }

  #annotation(runId: string, workflowId: string, signal: Annotation['signal'], nodeId?: string) {
    const annotationId = `ann-${digits(this.#made++, 22)}`;
    return {
      annotation_id: annotationId,
      tenant: this.#tenant,
      workspace: null,
      run_id: runId,
      workflow_id: workflowId,
      node_id: nodeId ?? null,
      target: JSON.stringify([null, nodeId ?? null]),
      author: 'principal:reviewer',
      kind: signal.kind,
      rating: null,
      created_at: Number.parseInt(runId.slice(4, 13), 36),
      body: JSON.stringify({ annotationId, target: { runId, nodeId }, signal }),
    };
  }
}

function eventsOf(runId: string, { nodes, id }: WorkflowDefinition, planted: PlantedRun): StoredEvent[] {
  const {
    prompt,
    isFailed,
    isCancelled,
    edit,
    costUsd,
    outputs = { text: 'as long as what nodes usually give, a sentence or two' },
  } = planted;
  const timestamp = new Date(Number.parseInt(runId.slice(4, 13), 36)).toISOString();
  const events: StoredEvent[] = [];
  const add = (type: string, payload: object, nodeId?: string): void => {
    const sequence = events.length;
    events.push({
      sequence,
      type,
      hidden: null,
      body: JSON.stringify({ runId, sequence, type, timestamp, payload, nodeId }),
    });
  };
  add('run.started', { workflowId: id });
  for (const { id: nodeId, typeId } of nodes) {
    add('node.started', { nodeId, typeId, attempt: 0 }, nodeId);
    if (prompt) {
      const resolved = `prompt:${prompt.templateId}@${prompt.version}`;
      add('agent.promptResolved', { nodeId, kind: 'system', chain: [], resolved }, nodeId);
    }
    if (edit?.gate === nodeId) {
      const data = { title: 'Approve', actions: ['edit-accept'], artifactData: { text: edit.before } };
      add('interrupt.requested', { kind: 'approval', key: `${nodeId}:0`, data }, nodeId);
      const answer = { action: 'edit-accept', editedArtifactData: { text: edit.after }, decidedBy: 'planter' };
      add('approval.received', { nodeId, ...answer }, nodeId);
    }
    if (costUsd !== undefined) add('provider.usage', { ...USAGE, nodeId, costEstimateUsd: costUsd }, nodeId);
    add('node.completed', { nodeId, outputs }, nodeId);
  }
  add(isFailed ? 'run.failed' : isCancelled ? 'run.cancelled' : 'run.completed', {});
  return events;
}

function row(id: string, types: readonly string[]): WorkflowDefinition {
  return named(
    id,
    types.map((type, index) => node(`n${index}`, type)),
  );
}

/** A workflow of nodes in a line. */
export function named(id: string, nodes: readonly WorkflowNode[]): WorkflowDefinition {
  return workflow(nodes, line(...nodes.map((each) => each.id)), { id });
}

/** The planted path, behind a step that each has for itself. */
function chainWorkflow(name: string): WorkflowDefinition {
  const steps = PLANTED_PATH.map((type, index) => node(`s${index}`, type, { config: { mode: 'same', of: name } }));
  return named(`habit-chain-${name}`, [node('own', `vendor.own.${name}`), ...steps]);
}
