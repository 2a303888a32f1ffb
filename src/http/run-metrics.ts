import type { Counter } from 'prom-client';
import { endedAttempts } from '../engine/inspection/attempt-times.ts';
import { isFromRecord, isTerminal, statusOf } from '../engine/run/run.ts';
import type { ProviderUsage } from '../protocol/ai/models.ts';
import { isManagement } from '../protocol/running/management.ts';
import type { RunStatus } from '../protocol/running/runs.ts';
import type { Append } from '../runtime/reaction.ts';
import type { MetricMaker } from './metric-maker.ts';

/** Models that are counted by name. Operators list theirs, so there are few; the rest is `other`. */
const MODELS_MAX = 100;
const OTHER_MODEL = { provider: 'other', model: 'other' };

/** The part of an append that is counted. */
export type CountedAppend = Pick<Append, 'run' | 'events' | 'before'>;

const ENDINGS = ['completed', 'failed', 'cancelled'] as const satisfies readonly RunStatus[];

/**
 * Counts what committed events say: runs, attempts and model calls. Every event is committed once, on one host, so the
 * sum over all hosts is right. What a fork or a replay takes over from its source has been counted there.
 */
export function appendCounter(make: MetricMaker): (append: CountedAppend) => void {
  const started = make.counter('capstan_runs_started_total');
  const finished = make.counter('capstan_runs_finished_total');
  // A counter that begins with its first event shows no increase by it.
  for (const status of ENDINGS) finished.inc({ status }, 0);
  const recovered = make.counter('capstan_runs_recovered_total');
  const retries = make.counter('capstan_retries_total');
  const attempts = make.histogram('capstan_attempt_seconds');
  const usage = usageCounter(make);
  return ({ run, events, before }) => {
    if (isManagement(run.facts.workflowId)) return;
    const isNew = before === undefined;
    if (isNew) started.inc();
    if (isTerminal(run)) finished.inc({ status: statusOf(run) });
    if (run.facts.fork && (isNew || isFromRecord(run.facts.fork))) return;
    for (const { outcome, seconds } of endedAttempts(run, events)) attempts.observe({ outcome }, seconds);
    for (const event of events) {
      if (event.type === 'run.resumed' && event.payload.recovered) recovered.inc();
      else if (event.type === 'node.retried') retries.inc();
      else if (event.type === 'provider.usage') usage(event.payload);
    }
  };
}

function usageCounter(make: MetricMaker): (usage: ProviderUsage) => void {
  const tokens: Counter = make.counter('capstan_model_tokens_total');
  const dollars: Counter = make.counter('capstan_model_cost_usd_total');
  const known = new Set<string>();
  return ({ provider, model, inputTokens, outputTokens, costEstimateUsd, currency = 'USD' }) => {
    const name = JSON.stringify([provider, model]);
    if (known.size < MODELS_MAX) known.add(name);
    const labels = known.has(name) ? { provider, model } : OTHER_MODEL;
    tokens.inc({ ...labels, direction: 'input' }, inputTokens);
    tokens.inc({ ...labels, direction: 'output' }, outputTokens);
    if (costEstimateUsd !== undefined && currency === 'USD') dollars.inc(labels, costEstimateUsd);
  };
}
