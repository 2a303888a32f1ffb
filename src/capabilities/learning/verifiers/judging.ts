import { extractFinding, type Finding } from '../../../engine/judging/verdict.ts';
import { finalOutputs } from '../../../engine/run/next.ts';
import type { Run } from '../../../engine/run/run.ts';
import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { visibleVariables } from '../../../engine/run/visible-variables.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { Verifier, VerifierSpec } from '../../../protocol/learning/verifiers.ts';
import type { Annotation } from '../../../protocol/people/annotations.ts';
import type { Configurable } from '../../../protocol/running/runs.ts';
import { and, changeOf, unchanged } from '../../../runtime/change.ts';
import { managementPlan } from '../../../runtime/management.ts';
import type { PinnedPlan } from '../../../runtime/plans.ts';
import { costOfRun } from '../../../runtime/run-cost.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactValue } from '../../../system/redaction.ts';
import type { Host } from '../../capability.ts';
import { createHostRun } from '../../host-run.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Runs } from '../../running/runs/door.ts';
import type { JudgedRun, Judgement, JudgeRequest, Pending, Undecided, Verdict } from './door.ts';
import { judgeOnHost } from './judge-on-host.ts';
import { modelNamed } from './nodes.ts';
import { awaitJudgingRun } from './records.ts';

type Find = (from: Visibility, verifierRef: string) => Promise<Verifier | undefined>;

interface Judge {
  readonly name: string;
  readonly spec: VerifierSpec;
}

/** The metadata member that marks judging runs. The mark alone has no effect: a judging run is waited for by its id. */
export const JUDGE_MARK = 'verifier';
/** The workflow of the runs in which models judge; what a model costs that judges without one counts as its costs, too. */
export const JUDGE_WORKFLOW = 'capstan-judge';

const ANNOTATIONS_MAX = 500;
const MATERIAL_BYTES_MAX = 256 * 1_024;
const JUDGING_MS_MAX = 10 * 60_000;
const HOST_RUBRIC = 'The objective is reached, in full and as it is written. What is only promised does not count.';

/** What judging needs of other capabilities, and the model that judges without criteria. */
export interface JudgingNeeds {
  readonly runs: Pick<Runs, 'check'>;
  readonly feedback: Pick<Feedback, 'pages'> | undefined;
  readonly judgeModel: string | undefined;
  readonly find: Find;
}

/** Comes to verdicts on runs. Whatever goes wrong, the answer is never `satisfied`. */
export class Judging {
  readonly #host: Pick<Host, 'runtime' | 'executor'>;
  readonly #needs: JudgingNeeds;

  constructor(host: Pick<Host, 'runtime' | 'executor'>, needs: JudgingNeeds) {
    this.#host = host;
    this.#needs = needs;
  }

  async judge(subject: Subject, request: JudgeRequest): Promise<Judgement> {
    if (request.pending) return this.#conclude(subject, request.pending.runId);
    const judge = await this.#choose(subject, request);
    if ('undecided' in judge) return judge;
    const { snapshot, ...rest } = request.run;
    const finding = await judgeOnHost(judge.spec, { run: snapshot, ...rest }, this.#host.runtime.schemas);
    return finding ? verdictOf(judge.name, finding) : this.#ask(subject, request, judge);
  }

  async judgedRun(from: Visibility, runId: string): Promise<JudgedRun | undefined> {
    const seen = await this.#host.runtime.reader.view(from, runId, ({ run }) => ({
      snapshot: snapshotOf(run, sha256Hex),
      outputs: { ...run.outputs } as JsonObject,
      variables: { ...visibleVariables(run) },
    }));
    return seen && { ...seen, annotations: await this.#annotationsOf(from, runId) };
  }

  async #annotationsOf({ tenant }: Visibility, runId: string): Promise<Annotation[]> {
    const all: Annotation[] = [];
    for await (const page of this.#needs.feedback?.pages({ tenant, run_id: runId }) ?? []) {
      all.push(...page.map(({ body }) => JSON.parse(body) as Annotation));
      if (all.length >= ANNOTATIONS_MAX) break;
    }
    return all.slice(0, ANNOTATIONS_MAX);
  }

  async #choose(from: Visibility, { check, verifierRef, criteria = [] }: JudgeRequest): Promise<Judge | Undecided> {
    if (check === 'verifier') {
      const verifier = await this.#needs.find(from, verifierRef ?? '');
      if (!verifier) return undecided(`There is no verifier ${JSON.stringify(verifierRef ?? null)}.`);
      return { name: `${verifier.id}@${verifier.version}`, spec: verifier };
    }
    if (criteria.length > 0) return { name: 'host:criteria', spec: { kind: 'criteria', criteria: [...criteria] } };
    const { judgeModel } = this.#needs;
    if (judgeModel === undefined) return undecided('The goal has no criteria, and no model is configured to judge it.');
    return { name: `host:${judgeModel}`, spec: { kind: 'model', rubric: HOST_RUBRIC, model: judgeModel } };
  }

  /** Starts a judging run: of the verifier's workflow, or of the management workflow that asks a model. */
  async #ask(subject: Subject, request: JudgeRequest, { name, spec }: Judge): Promise<Undecided | Pending> {
    const { runtime, executor } = this.#host;
    const inputs = inputsFor(request, spec);
    if (Buffer.byteLength(JSON.stringify(inputs)) > MATERIAL_BYTES_MAX) {
      return undecided('The run is too large to be judged.', name);
    }
    const workflow = await this.#workflowFor(subject, spec);
    if (!workflow) return undecided(`The workflow ${spec.workflowId} no longer exists.`, name);
    const configurable = this.#configurableFor(request, spec);
    const { goalId, run, wakes } = request;
    const metadata = { [JUDGE_MARK]: name, goalId, judgedRunId: run.snapshot.runId };
    const given = { subject, workflow, inputs, configurable, metadata };
    const created = await createHostRun(runtime, this.#needs.runs, given);
    if (isRefusal(created)) return undecided(`The judging run cannot start: ${created.message}`, name);
    const { runId } = created.held.run.facts;
    const awaiting = changeOf(undefined, [awaitJudgingRun({ tenant: subject.tenant, runId }, wakes)]);
    return { pending: { runId, change: and(awaiting, executor.startRun(created)) } };
  }

  async #workflowFor(from: Visibility, { kind, workflowId }: VerifierSpec): Promise<PinnedPlan | undefined> {
    const { runtime } = this.#host;
    return kind === 'model' ? managementPlan(runtime, JUDGE_WORKFLOW) : runtime.plans.current(from, workflowId!);
  }

  #configurableFor({ maxCostUsd }: JudgeRequest, { kind, model }: VerifierSpec): Configurable {
    return defined({
      budget: maxCostUsd === undefined ? undefined : { maxCostUsd: Math.max(0, maxCostUsd) },
      ...(kind === 'model' ? { ai: modelNamed(model), runTimeoutMs: JUDGING_MS_MAX } : {}),
    }) as Configurable;
  }

  /** The verdict of a judging run; pending as long as it has not ended. */
  async #conclude(from: Visibility, runId: string): Promise<Judgement> {
    const { runtime } = this.#host;
    const conclusion = await runtime.reader.view(from, runId, ({ run }) => conclusionOf(run));
    if (!conclusion) return undecided('The judging run has expired.');
    const { name, ended, finding, problem } = conclusion;
    if (!ended) return { pending: { runId, change: unchanged(undefined) } };
    const { costUsd } = await costOfRun(runtime, { tenant: from.tenant, runId });
    const judgement = finding ? verdictOf(name, finding) : undecided(problem, name);
    return costUsd > 0 ? { ...judgement, costUsd } : judgement;
  }
}

function conclusionOf(run: Run) {
  const name = String(run.facts.metadata?.[JUDGE_MARK] ?? 'unknown');
  const isDone = run.ended === 'completed';
  const problem = isDone
    ? 'The judging run gave no verdict: its outputs must have { satisfied, confidence?, evidence? }.'
    : `The judging run ended as ${run.ended}${run.error ? `: ${run.error.code}` : ''}.`;
  const finding = isDone ? extractFinding(finalOutputs(run)) : undefined;
  return { name, ended: run.ended, finding, problem };
}

/** The inputs of a judging run: what readers of the judged run see, so nothing sensitive. */
export function inputsFor(
  { goalId, objective, objectiveVersion, run }: Pick<JudgeRequest, 'goalId' | 'objective' | 'objectiveVersion' | 'run'>,
  spec: VerifierSpec,
): JsonObject {
  const { snapshot, annotations } = run;
  const states = Object.entries(snapshot.nodeStates ?? {});
  const outputs = Object.fromEntries(states.flatMap(([id, state]) => (state.outputs ? [[id, state.outputs]] : [])));
  if (spec.kind === 'workflow') {
    const goal = { id: goalId, objective, objectiveVersion };
    return { goal, run: { ...snapshot, outputs, annotations } };
  }
  const { status, inputs, variables, error } = snapshot;
  return {
    rubric: spec.rubric,
    objective,
    material: defined({ status, error, inputs, variables, outputs, annotations }),
  };
}

function verdictOf(judge: string, finding: Finding): Verdict {
  return { ...finding, judge, evidence: redactValue(finding.evidence) };
}

function undecided(reason: string, judge?: string): Undecided {
  return { undecided: true, reason, ...defined({ judge }) };
}
