import { readJsonAnswer } from '../../../engine/expressions/json-answer.ts';
import { parseFinding } from '../../../engine/judging/verdict.ts';
import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import type { VerifierSpec } from '../../../protocol/learning/verifiers.ts';
import { perform } from '../../../runtime/change.ts';
import { OverBudget } from '../../../runtime/effects/model.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Models } from '../../ai/models/door.ts';
import type { Costs } from '../../operations/costs/door.ts';
import type { Trial, TrialRequest } from './door.ts';
import { judgeOnHost } from './judge-on-host.ts';
import { inputsFor, JUDGE_WORKFLOW } from './judging.ts';
import { judgeMessages, modelNamed, strict, VERDICT_SCHEMA } from './nodes.ts';

/** What a trial asks, and what its costs are counted by. */
interface TrialNeeds {
  readonly models: Pick<Models, 'seam'>;
  readonly costs: Pick<Costs, 'countOutside'>;
}

/** Judges a run without a judging run: nothing is recorded but what it cost, so this decides nothing. */
export async function tryJudging(
  runtime: Pick<Runtime, 'schemas' | 'ids' | 'log' | 'store' | 'mutex'>,
  { models, costs }: TrialNeeds,
  by: Visibility,
  request: TrialRequest,
): Promise<Trial> {
  const { schemas, ids, log } = runtime;
  const { tenant } = by;
  const { spec, run } = request;
  const { snapshot, ...rest } = run;
  const local = await judgeOnHost(spec, { run: snapshot, ...rest }, schemas);
  if (local) return { satisfied: local.satisfied, costUsd: 0 };
  let asked: AskedModel;
  try {
    asked = await askModel(models, { tenant, effectId: ids.next('trial-') }, request, spec);
  } catch (error) {
    if (error instanceof OverBudget) return { overBudget: true, costUsd: 0 };
    if (!(error instanceof NodeFailure)) log.warn({ err: error, tenant }, 'a judge failed in a trial');
    return { costUsd: 0 };
  }
  const { trial, usage } = asked;
  if (usage) await perform(runtime, async () => costs.countOutside(by, JUDGE_WORKFLOW, usage));
  return trial;
}

interface AskedModel {
  readonly trial: Trial;
  readonly usage: ProviderUsage | undefined;
}

async function askModel(
  models: Pick<Models, 'seam'>,
  { tenant, effectId }: { readonly tenant: string; readonly effectId: string },
  { run, objective, maxCostUsd, signal }: TrialRequest,
  spec: VerifierSpec,
): Promise<AskedModel> {
  const { rubric, material } = inputsFor({ goalId: '', objectiveVersion: 1, objective, run }, spec);
  const messages = judgeMessages({ rubric: String(rubric), objective, material });
  const { chunks, usage } = await models.seam(
    { ...modelNamed(spec.model), messages, outputSchema: VERDICT_SCHEMA },
    { effectId, signal, tenant, runId: run.snapshot.runId, nodeId: 'judge', allowance: { costUsd: maxCostUsd } },
  );
  const answer = readJsonAnswer(chunks.map(({ text }) => text).join(''));
  const finding = answer && parseFinding(answer.value);
  const costUsd = usage?.costEstimateUsd ?? 0;
  return { trial: finding ? { satisfied: strict(finding).satisfied, costUsd } : { costUsd }, usage };
}
