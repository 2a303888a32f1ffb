import { endedAttempts } from '../../../engine/inspection/attempt-times.ts';
import { isFromRecord, isTerminal, type Run, statusOf } from '../../../engine/run/run.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { Append } from '../../../runtime/reaction.ts';
import type { MetricReading } from '../../../system/meter.ts';
import { Instrument, type InstrumentRow } from './instruments.ts';
import { timeOf } from './times.ts';

const WORKFLOW = 'openwop.workflow_id';
const TENANT = 'openwop.tenant_id';
const STATUS = 'openwop.run_status';
const NODE_TYPE = 'openwop.node_type';

/** The metrics that the protocol names, with tenants and workflows. They are sent, and never served to strangers. */
const TABLE = {
  'openwop.run.created': { help: 'Runs that were accepted', unit: '1', labels: [WORKFLOW, TENANT] },
  'openwop.run.completed': { help: 'Runs that have ended', unit: '1', labels: [STATUS, WORKFLOW, TENANT] },
  'openwop.run.duration': {
    help: 'Time from the creation of a run to its end, the waiting included',
    unit: 's',
    labels: [STATUS, WORKFLOW, TENANT],
    buckets: [0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1_800, 3_600],
  },
  'openwop.run.backlog': {
    help: 'Time from the creation of a run until a host began to work on it',
    unit: 's',
    labels: [TENANT, WORKFLOW],
    buckets: [0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 1_800],
  },
  'openwop.queue.enqueued': { help: 'Runs that were put into the queue', unit: '1', labels: [TENANT] },
  'openwop.node.completed': { help: 'Nodes that have settled', unit: '1', labels: [NODE_TYPE, STATUS] },
  'openwop.node.duration': {
    help: 'Time of an attempt at a node, without the time that people take to answer',
    unit: 's',
    labels: [NODE_TYPE, STATUS],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
  },
  'openwop.node.attempts': { help: 'Attempts at nodes after the first', unit: '1', labels: [NODE_TYPE] },
  'openwop.activity.invocations': { help: 'Calls of something outside', unit: '1', labels: ['provider', STATUS] },
  'openwop.activity.duration': {
    help: 'Time of a call of something outside',
    unit: 's',
    labels: ['provider', STATUS],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  },
  'openwop.activity.tokens': { help: 'Tokens of model calls', unit: '{token}', labels: ['provider', 'direction'] },
  'openwop.cap.exceeded': { help: 'Limits that runs have reached', unit: '1', labels: ['openwop.cap_kind'] },
  'openwop.interrupt.requested': { help: 'Questions to people', unit: '1', labels: ['openwop.interrupt_kind'] },
  'openwop.interrupt.duration': {
    help: 'Time from a question to its answer',
    unit: 's',
    labels: ['openwop.interrupt_kind', STATUS],
    buckets: [60, 300, 900, 1_800, 3_600, 14_400, 86_400, 604_800],
  },
  'openwop.orchestrator.decisions': {
    help: 'Decisions of supervisors',
    unit: '1',
    labels: [TENANT, WORKFLOW, 'openwop.orchestrator.decision_kind'],
  },
  'openwop.cost.usd': {
    help: 'Cost of model calls, by the prices in CAPSTAN_MODELS',
    unit: 'USD',
    labels: ['provider', 'openwop.cost.estimated'],
  },
} as const satisfies Record<string, InstrumentRow>;

type Name = keyof typeof TABLE;

/** The events that settle a node, as the protocol's metrics call their outcomes. */
const SETTLED: Partial<Record<RunEvent['type'], string>> = {
  'node.completed': 'completed',
  'node.failed': 'failed',
  'node.skipped': 'skipped',
  'node.cancelled': 'cancelled',
};
/** Sequence of the first event after the creation of a run. */
const FIRST_STEP = 1;

/** Counts what the protocol names, from committed events: each is committed once, so the sum over all hosts is right. */
export class ProtocolMetrics {
  readonly #instruments = new Map<string, Instrument>(
    Object.entries(TABLE).map(([name, row]) => [name, new Instrument(name, row)]),
  );

  /** Counts an append of this host. What a fork or a replay takes over from its source has been counted there. */
  appended({ run, events, before }: Pick<Append, 'run' | 'events' | 'before'>): void {
    const { workflowId, owner, fork } = run.facts;
    if (isManagement(workflowId)) return;
    const isNew = before === undefined;
    if (isNew) {
      this.#add('openwop.run.created', 1, workflowId, owner.tenant);
      this.#add('openwop.queue.enqueued', 1, owner.tenant);
    }
    if (isTerminal(run)) this.#ended(run, events);
    if (fork && (isNew || isFromRecord(fork))) return;
    this.#began(run, events);
    for (const { nodeId, outcome, seconds } of endedAttempts(run, events)) {
      this.#add('openwop.node.duration', seconds, typeOf(run, nodeId), outcome === 'completed' ? outcome : 'failed');
    }
    for (const event of events) this.#event(run, event);
  }

  /** Counts a call of something outside. */
  called(provider: string, outcome: 'success' | 'error', ms: number): void {
    this.#add('openwop.activity.invocations', 1, provider, outcome);
    this.#add('openwop.activity.duration', ms / 1_000, provider, outcome);
  }

  /** Everything counted so far, with what the protocol calls its queue, from the metrics of the host. */
  read(ofHost: readonly MetricReading[]): MetricReading[] {
    const counted = [...this.#instruments.values()]
      .map((each) => each.read())
      .filter(({ points }) => points.length > 0);
    return [...counted, ...queueDepth(ofHost)];
  }

  #add(name: Name, value: number, first: string, second?: string, third?: string): void {
    this.#instruments.get(name)!.add(value, first, second, third);
  }

  #ended(run: Run, events: readonly RunEvent[]): void {
    const { workflowId, owner, createdAt } = run.facts;
    const status = statusOf(run);
    this.#add('openwop.run.completed', 1, status, workflowId, owner.tenant);
    this.#add('openwop.run.duration', secondsSince(createdAt, events.at(-1)), status, workflowId, owner.tenant);
  }

  #began({ facts }: Run, events: readonly RunEvent[]): void {
    const first = events.find(({ sequence }) => sequence === FIRST_STEP);
    if (!first) return;
    this.#add('openwop.run.backlog', secondsSince(facts.createdAt, first), facts.owner.tenant, facts.workflowId);
  }

  #event(run: Run, event: RunEvent): void {
    const settled = SETTLED[event.type];
    if (settled !== undefined) this.#add('openwop.node.completed', 1, typeOf(run, event.nodeId), settled);
    const { workflowId, owner } = run.facts;
    switch (event.type) {
      case 'node.retried':
        this.#add('openwop.node.attempts', 1, typeOf(run, event.nodeId));
        break;
      case 'node.suspended':
        this.#add('openwop.interrupt.requested', 1, event.payload.kind ?? 'custom');
        break;
      case 'interrupt.resolved':
        this.#answered(run, event);
        break;
      case 'cap.breached':
        this.#add('openwop.cap.exceeded', 1, event.payload.kind);
        break;
      case 'runOrchestrator.decided':
        this.#add('openwop.orchestrator.decisions', 1, owner.tenant, workflowId, event.payload.decision.kind);
        break;
      case 'provider.usage':
        this.#used(event.payload);
    }
  }

  #answered({ plan, nodes }: Run, { payload }: RunEvent<'interrupt.resolved'>): void {
    const waitedMs = nodes[plan.node(payload.nodeId)?.index ?? -1]?.waitedMs;
    if (waitedMs === undefined) return;
    this.#add('openwop.interrupt.duration', waitedMs / 1_000, payload.kind ?? 'custom', 'resolved');
  }

  #used({ provider, inputTokens, outputTokens, costEstimateUsd, currency = 'USD' }: UsagePayload): void {
    this.#add('openwop.activity.tokens', inputTokens, provider, 'input');
    this.#add('openwop.activity.tokens', outputTokens, provider, 'output');
    if (costEstimateUsd !== undefined && currency === 'USD') {
      this.#add('openwop.cost.usd', costEstimateUsd, provider, 'true');
    }
  }
}

type UsagePayload = RunEvent<'provider.usage'>['payload'];

function typeOf({ plan }: Run, nodeId = ''): string {
  return plan.node(nodeId)?.node.typeId ?? 'unknown';
}

function secondsSince(ms: number, event: RunEvent | undefined): number {
  return Math.max(0, timeOf(event?.timestamp ?? '') - ms) / 1_000;
}

const DUE = 'capstan_work_due';

function queueDepth(ofHost: readonly MetricReading[]): MetricReading[] {
  const due = ofHost.find(({ name }) => name === DUE);
  const runs = due?.kind === 'gauge' ? due.points.find(({ labels }) => labels.kind === 'run') : undefined;
  if (!runs) return [];
  const points = [{ labels: { [TENANT]: 'all' }, value: runs.value }];
  return [
    { name: 'openwop.queue.depth', help: 'Runs that are due and wait for a host', unit: '1', kind: 'gauge', points },
  ];
}
