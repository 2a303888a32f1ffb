import { readJsonAnswer } from '../../../engine/expressions/json-answer.ts';
import { parseFinding } from '../../../engine/judging/verdict.ts';
import type { VerifierSpec } from '../../../protocol/learning/verifiers.ts';
import { OverBudget } from '../../../runtime/effects/model.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Models } from '../../ai/models/door.ts';
import type { Trial, TrialRequest } from './door.ts';
import { judgeOnHost } from './judge-on-host.ts';
import { inputsFor } from './judging.ts';
import { judgeMessages, modelNamed, strict, VERDICT_SCHEMA } from './nodes.ts';

/** Judges a run without a judging run: nothing is recorded, so this decides nothing. */
export async function tryJudging(
  { schemas, ids, log }: Pick<Runtime, 'schemas' | 'ids' | 'log'>,
  models: Pick<Models, 'seam'>,
  tenant: string,
  request: TrialRequest,
): Promise<Trial> {
  const { spec, run } = request;
  const { snapshot, ...rest } = run;
  const local = await judgeOnHost(spec, { run: snapshot, ...rest }, schemas);
  if (local) return { satisfied: local.satisfied, costUsd: 0 };
  try {
    return await askModel(models, { tenant, effectId: ids.next('trial-') }, request, spec);
  } catch (error) {
    if (error instanceof OverBudget) return { overBudget: true, costUsd: 0 };
    if (!(error instanceof NodeFailure)) log.warn({ err: error, tenant }, 'a judge failed in a trial');
    return { costUsd: 0 };
  }
}

async function askModel(
  models: Pick<Models, 'seam'>,
  { tenant, effectId }: { readonly tenant: string; readonly effectId: string },
  { run, objective, maxCostUsd, signal }: TrialRequest,
  spec: VerifierSpec,
): Promise<Trial> {
  const { rubric, material } = inputsFor({ goalId: '', objectiveVersion: 1, objective, run }, spec);
  const messages = judgeMessages({ rubric: String(rubric), objective, material });
  const { chunks, usage } = await models.seam(
    { ...modelNamed(spec.model), messages, outputSchema: VERDICT_SCHEMA },
    { effectId, signal, tenant, runId: run.snapshot.runId, nodeId: 'judge', allowance: { costUsd: maxCostUsd } },
  );
  const answer = readJsonAnswer(chunks.map(({ text }) => text).join(''));
  const finding = answer && parseFinding(answer.value);
  const costUsd = usage?.costEstimateUsd ?? 0;
  return finding ? { satisfied: strict(finding).satisfied, costUsd } : { costUsd };
}
