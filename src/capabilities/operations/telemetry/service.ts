import { appendSpan, runSpan } from '../../../engine/inspection/span-names.ts';
import { errorTypeOf } from '../../../engine/inspection/spans.ts';
import type { Run, RunFacts } from '../../../engine/run/run.ts';
import { isSampled, type RunTrace, sampledFlags } from '../../../protocol/format/trace.ts';
import { isTerminalEvent, type RunEvent } from '../../../protocol/running/events.ts';
import type { Span } from '../../../protocol/running/inspection.ts';
import { BoundedCache } from '../../../runtime/bounded-cache.ts';
import type { AppendListener } from '../../../runtime/hub.ts';
import type { Append } from '../../../runtime/reaction.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Activity, ActivityOutcome, ActivityReport, Tracing } from '../../../runtime/tracing.ts';
import { readEvents } from '../../../store/log.ts';
import { sha256Hex, spanIdOf } from '../../../system/digest.ts';
import type { EndedSpan, TraceExporter } from './exporter.ts';
import { FollowedRun } from './followed-run.ts';
import type { ProtocolMetrics } from './protocol-metrics.ts';
import { timeOf } from './times.ts';

/** Runs whose open spans are in memory. Others are read from their logs again when they go on. */
const FOLLOWED_MAX = 5_000;
const TRACE_ID_DIGITS = 32;
const NOT_SAMPLED = '00';
/** Events that one query reads. */
const EVENTS_PER_PAGE = 1_000;

type TelemetryRuntime = Pick<Runtime, 'store' | 'clock' | 'log' | 'reader'>;

/**
 * Traces of runs, and the metrics that go with them. The spans of runs, nodes, attempts and interrupts are derived from the log as it is announced; those
 * of effects and deliveries are taken where these are performed. A fault in here costs spans, never a run.
 */
export class Telemetry implements Tracing {
  readonly #runtime: TelemetryRuntime;
  readonly #open: (() => Promise<TraceExporter>) | undefined;
  readonly #metrics: ProtocolMetrics | undefined;
  readonly #followed = new BoundedCache<string, FollowedRun>(FOLLOWED_MAX);
  /** What has to be read from the store before it can be sent. */
  readonly #pending = new Set<Promise<void>>();
  #exporter: TraceExporter | undefined;

  /** Without `open` no traces are sent, and without `metrics` none are counted. */
  constructor(
    runtime: TelemetryRuntime,
    open: (() => Promise<TraceExporter>) | undefined,
    metrics?: ProtocolMetrics | undefined,
  ) {
    this.#runtime = runtime;
    this.#open = open;
    this.#metrics = metrics;
  }

  /** Loads the exporter. Until then nothing is recorded. */
  async open(): Promise<void> {
    this.#exporter = await this.#open?.();
  }

  /** Sends what is left. */
  async close(): Promise<void> {
    await Promise.all(this.#pending);
    await this.#exporter?.close();
  }

  traceOf({ runId, trace }: Pick<RunFacts, 'runId' | 'trace'>): RunTrace {
    const traceId = trace?.traceId ?? sha256Hex(`trace ${runId}`).slice(0, TRACE_ID_DIGITS);
    // Who sends no traces passes on what the caller has decided.
    if (!this.#open) return { flags: NOT_SAMPLED, ...trace, traceId };
    const isRecorded = this.#exporter?.isRecorded(traceId, trace) ?? false;
    return { ...trace, traceId, flags: sampledFlags(trace?.flags ?? NOT_SAMPLED, isRecorded) };
  }

  isObserved(trace: RunTrace): boolean {
    return this.#metrics !== undefined || isSampled(trace);
  }

  async observe<T>(
    activity: Activity,
    perform: () => Promise<T>,
    report: (outcome: ActivityOutcome<T>) => ActivityReport | undefined,
  ): Promise<T> {
    const startedAt = this.#runtime.clock.now();
    try {
      const result = await perform();
      this.#guarded(() => this.#recordActivity(activity, startedAt, report({ result })));
      return result;
    } catch (error) {
      this.#guarded(() => this.#recordActivity(activity, startedAt, report({ error })));
      throw error;
    }
  }

  /** Called with everything that this host commits to the log of a run. */
  readonly onAppend: AppendListener = (append) => {
    if (this.#metrics) this.#guarded(() => this.#metrics?.appended(append));
    if (this.#exporter) this.#guarded(() => this.#trace(append));
  };

  #trace({ run, identity, events, isInherited }: Append): void {
    const { facts } = run;
    const trace = this.traceOf(facts);
    if (events.length === 0 || !isSampled(trace)) return;
    if (!isInherited) this.#recordAppend(run, trace, events);
    const { tenant } = identity.subject;
    const followed = this.#followed.get(facts.runId) ?? this.#follow(run, trace, tenant);
    const reading = followed.take(events);
    if (isTerminalEvent(events.at(-1)!.type)) this.#followed.delete(facts.runId);
    if (reading) this.#waitFor(reading.catch((error) => this.#giveUp(facts.runId, error)));
  }

  /** How long the last of some events took from being recorded to being durable. */
  #recordAppend({ facts: { runId, workflowId } }: Run, trace: RunTrace, events: readonly RunEvent[]): void {
    const { type, sequence, timestamp } = events.at(-1)!;
    this.#send({
      name: 'openwop.event.append',
      trace,
      spanId: spanIdOf(appendSpan(runId, events[0]!.sequence)),
      parentSpanId: spanIdOf(runSpan(runId)),
      startedAt: timeOf(timestamp),
      endedAt: this.#runtime.clock.now(),
      status: 'unset',
      attributes: {
        'openwop.run_id': runId,
        'openwop.workflow_id': workflowId,
        'openwop.event_type': type,
        'openwop.event_seq': sequence,
      },
    });
  }

  #follow(run: Run, trace: RunTrace, tenant: string): FollowedRun {
    const { runId, createdAt, fork, parent } = run.facts;
    const followed = new FollowedRun(run, trace, {
      read: (from, to) => this.#read({ tenant, runId }, from, to),
      send: (span) => {
        const ended = endedSpan(span, trace, createdAt);
        if (span.name !== RUN_SPAN || (!fork && !parent)) this.#send(ended);
        else this.#waitFor(this.#sendRelated(ended, tenant, { fork, parent }));
      },
    });
    this.#followed.set(runId, followed);
    return followed;
  }

  async #read(ref: { readonly tenant: string; readonly runId: string }, from: number, to: number): Promise<RunEvent[]> {
    const events: RunEvent[] = [];
    for (let next = from; next < to; ) {
      const limit = Math.min(EVENTS_PER_PAGE, to - next);
      const page = await this.#runtime.store.read<{ body: string }>(readEvents(ref, next - 1, limit));
      if (page.length === 0) throw new Error(`the log of ${ref.runId} is gone`);
      for (const { body } of page) events.push(JSON.parse(body) as RunEvent);
      next = events.at(-1)!.sequence + 1;
    }
    return events;
  }

  /** The span of a child names its parent's workflow, and that of a fork is linked with its source's. */
  async #sendRelated(
    span: EndedSpan,
    tenant: string,
    { fork, parent }: Pick<RunFacts, 'fork' | 'parent'>,
  ): Promise<void> {
    const { reader } = this.#runtime;
    try {
      const parentRow = parent && (await reader.row({ tenant }, parent.runId));
      const source = fork && (await reader.row({ tenant }, fork.sourceRunId));
      const link = source && {
        traceId: this.traceOf(factsOf(source)).traceId,
        spanId: spanIdOf(runSpan(source.run_id)),
      };
      const named = parentRow ? { 'openwop.parent.workflow_id': parentRow.workflow_id } : {};
      this.#send({ ...span, attributes: { ...span.attributes, ...named }, link });
    } catch (error) {
      this.#runtime.log.warn({ err: error }, 'a span is sent without the run that it belongs to');
      this.#send(span);
    }
  }

  #recordActivity(
    { runId, workflowId, trace, spanId, parentSpanId }: Activity,
    startedAt: number,
    report: ActivityReport | undefined,
  ): void {
    if (!report) return;
    const { isRemote, attributes, errorCode } = report;
    const provider = errorTypeOf(report.provider);
    const endedAt = this.#runtime.clock.now();
    this.#metrics?.called(provider, errorCode === undefined ? 'success' : 'error', endedAt - startedAt);
    if (!isSampled(trace)) return;
    this.#send({
      name: `openwop.activity.${provider}`,
      ...{ trace, spanId, parentSpanId, isRemote, startedAt, endedAt },
      status: errorCode === undefined ? 'ok' : 'error',
      attributes: {
        'openwop.run_id': runId,
        ...(workflowId === undefined ? {} : { 'openwop.workflow_id': workflowId }),
        ...attributes,
        ...(errorCode === undefined ? {} : { 'error.type': errorTypeOf(errorCode) }),
      },
    });
  }

  #send(span: EndedSpan): void {
    this.#exporter?.send(span);
  }

  #waitFor(work: Promise<void>): void {
    this.#pending.add(work);
    void work.finally(() => this.#pending.delete(work));
  }

  #giveUp(runId: string, error: unknown): void {
    this.#followed.delete(runId);
    this.#runtime.log.warn({ runId, err: error }, 'the trace of a run has a gap, because its log could not be read');
  }

  #guarded(record: () => void): void {
    try {
      record();
    } catch (error) {
      this.#runtime.log.warn({ err: error }, 'a span could not be recorded');
    }
  }
}

const RUN_SPAN = 'openwop.run';

/** A span of the log as it is sent: without messages, which may quote anything. A fork's begin with the fork. */
function endedSpan({ name, spanId, parentSpanId, status, ...span }: Span, trace: RunTrace, since: number): EndedSpan {
  return {
    name,
    trace,
    spanId,
    parentSpanId: parentSpanId ?? undefined,
    startedAt: Math.max(since, timeOf(span.startedAt)),
    endedAt: timeOf(span.endedAt!),
    status: status.code,
    attributes: span.attributes,
  };
}
