import { type Finding, findFinding, judgeAtOnce } from '../../../engine/judging/verdict.ts';
import { finalOutputs } from '../../../engine/run/next.ts';
import { type Run, visibleVariables } from '../../../engine/run/run.ts';
import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { Criterion, Evidence, Verifier, VerifierSpec } from '../../../protocol/learning/verifiers.ts';
import type { Annotation } from '../../../protocol/people/annotations.ts';
import type { Configurable, RunSnapshot } from '../../../protocol/running/runs.ts';
import { createRun } from '../../../runtime/creation.ts';
import { managementPlan } from '../../../runtime/management.ts';
import type { PinnedPlan } from '../../../runtime/plans.ts';
import { costOfRun } from '../../../runtime/run-cost.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactValue } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Runs } from '../../running/runs/door.ts';
import { modelNamed } from './nodes.ts';
import { awaitJudgingRun } from './records.ts';

/** A run that has ended, for whoever judges it. */
export interface JudgedRun {
  /** As readers see it: what is sensitive is masked. */
  readonly snapshot: RunSnapshot;
  /** Node id to outputs, and variables, as they are. Nothing of them leaves the host. */
  readonly outputs: JsonObject;
  readonly variables: JsonObject;
  readonly annotations: readonly Annotation[];
}

export interface JudgeRequest {
  readonly check: 'verifier' | 'host';
  /** `id`, or `id@version`. */
  readonly verifierRef?: string | null | undefined;
  /** What the host judges by, where it is the judge. */
  readonly criteria?: readonly Criterion[] | undefined;
  readonly goalId: string;
  readonly objective: string;
  readonly objectiveVersion: number;
  readonly run: JudgedRun;
  /** What judging may cost. */
  readonly maxCostUsd?: number | undefined;
  /** The work item to wake once a verdict that took a run of its own is there. */
  readonly wakes: string;
  /** That run, where an earlier answer named one. */
  readonly pending?: { readonly runId: string } | undefined;
}

export interface Verdict {
  readonly satisfied: boolean;
  readonly confidence?: number;
  /** Who judged: `id@version`, or the host by criteria or by a model. */
  readonly judge: string;
  readonly evidence: readonly Evidence[];
  readonly costUsd?: number;
}

/** Nobody could say. That is not satisfied, and not unsatisfied either. */
export interface Undecided {
  readonly undecided: true;
  readonly reason: string;
  readonly judge?: string;
  readonly costUsd?: number;
}

/** A run has to say. It begins with these writes; once it is over, the judge is asked again. */
export interface Pending {
  readonly pending: { readonly runId: string; readonly writes: Unit; readonly committed: () => void };
}

export type Judgement = Verdict | Undecided | Pending;

type Find = (from: Visibility, verifierRef: string) => Promise<Verifier | undefined>;

interface Judge {
  readonly name: string;
  readonly spec: VerifierSpec;
}

/** How a run that judges is marked. Only a host can make it count: it is waited for by its id. */
export const JUDGE_MARK = 'verifier';

const ANNOTATIONS_MAX = 500;
const MATERIAL_BYTES_MAX = 256 * 1_024;
const JUDGING_MS_MAX = 10 * 60_000;
const HOST_RUBRIC = 'The objective is reached, in full and as it is written. What is only promised does not count.';

/** Comes to verdicts on runs. Whatever goes wrong, the answer is never that something is satisfied. */
export class Judging {
  readonly #host: Host;
  readonly #find: Find;
  readonly #runs: Pick<Runs, 'check'>;
  readonly #feedback: Pick<Feedback, 'pages'> | undefined;

  constructor(
    host: Host,
    find: Find,
    { runs, feedback }: { runs: Pick<Runs, 'check'>; feedback?: Pick<Feedback, 'pages'> | undefined },
  ) {
    this.#host = host;
    this.#find = find;
    this.#runs = runs;
    this.#feedback = feedback;
  }

  readonly judge = async (subject: Subject, request: JudgeRequest): Promise<Judgement> => {
    if (request.pending) return this.#conclude(subject, request.pending.runId);
    const judge = await this.#choose(subject, request);
    if ('undecided' in judge) return judge;
    const { snapshot, ...rest } = request.run;
    const finding = judgeAtOnce(judge.spec, { run: snapshot, ...rest });
    return finding ? verdictOf(judge.name, finding) : this.#ask(subject, request, judge);
  };

  /** What a judge sees of a run; nothing where the run is not kept any more. */
  readonly judgedRun = async (from: Visibility, runId: string): Promise<JudgedRun | undefined> => {
    const seen = await this.#host.runtime.reader.view(from, runId, ({ run }) => ({
      snapshot: snapshotOf(run, sha256Hex),
      outputs: { ...run.outputs } as JsonObject,
      variables: { ...visibleVariables(run) },
    }));
    return seen && { ...seen, annotations: await this.#annotationsOf(from, runId) };
  };

  async #annotationsOf({ tenant }: Visibility, runId: string): Promise<Annotation[]> {
    const all: Annotation[] = [];
    for await (const page of this.#feedback?.pages({ tenant, run_id: runId }) ?? []) {
      all.push(...page.map(({ body }) => JSON.parse(body) as Annotation));
      if (all.length >= ANNOTATIONS_MAX) break;
    }
    return all.slice(0, ANNOTATIONS_MAX);
  }

  async #choose(from: Visibility, { check, verifierRef, criteria = [] }: JudgeRequest): Promise<Judge | Undecided> {
    if (check === 'verifier') {
      const verifier = await this.#find(from, verifierRef ?? '');
      if (!verifier) return undecided(`There is no verifier ${JSON.stringify(verifierRef ?? null)}.`);
      return { name: `${verifier.id}@${verifier.version}`, spec: verifier };
    }
    if (criteria.length > 0) return { name: 'host:criteria', spec: { kind: 'criteria', criteria: [...criteria] } };
    const { judgeModel } = this.#host.settings;
    if (judgeModel === undefined) return undecided('There are no criteria, and no model is there to judge.');
    return { name: `host:${judgeModel}`, spec: { kind: 'model', rubric: HOST_RUBRIC, model: judgeModel } };
  }

  /** Has a run give the verdict: of the verifier's workflow, or of the one in which a model is asked. */
  async #ask(subject: Subject, request: JudgeRequest, { name, spec }: Judge): Promise<Undecided | Pending> {
    const { runtime, executor } = this.#host;
    const inputs = inputsFor(request, spec);
    if (Buffer.byteLength(JSON.stringify(inputs)) > MATERIAL_BYTES_MAX) {
      return undecided('The run is too large to be handed to a judge.', name);
    }
    const workflow = await this.#workflowFor(subject, spec);
    if (!workflow) return undecided(`There is no workflow ${spec.workflowId} any more.`, name);
    const configurable = this.#configurableFor(request, spec);
    const refusal = this.#runs.check({ isTest: false }, { inputs, configurable }, workflow.plan);
    if (refusal) return undecided(`The run that was to judge cannot begin: ${refusal.message}`, name);
    const { goalId, run, wakes } = request;
    const created = createRun(runtime, {
      subject,
      workflow,
      inputs,
      configurable,
      metadata: { [JUDGE_MARK]: name, goalId, judgedRunId: run.snapshot.runId },
      depth: 0,
    });
    const { runId } = created.held.run.facts;
    const { writes, committed } = executor.birth(created);
    const awaiting = awaitJudgingRun({ tenant: subject.tenant, runId }, wakes);
    return { pending: { runId, writes: [awaiting, ...writes], committed } };
  }

  async #workflowFor(from: Visibility, { kind, workflowId }: VerifierSpec): Promise<PinnedPlan | undefined> {
    const { runtime } = this.#host;
    return kind === 'model' ? managementPlan(runtime, 'capstan-judge') : runtime.plans.current(from, workflowId!);
  }

  #configurableFor({ maxCostUsd }: JudgeRequest, { kind, model }: VerifierSpec): Configurable {
    return defined({
      budget: maxCostUsd === undefined ? undefined : { maxCostUsd: Math.max(0, maxCostUsd) },
      ...(kind === 'model' ? { ai: modelNamed(model), runTimeoutMs: JUDGING_MS_MAX } : {}),
    }) as Configurable;
  }

  /** What the run says that was to give the verdict. */
  async #conclude(from: Visibility, runId: string): Promise<Judgement> {
    const { runtime } = this.#host;
    const said = await runtime.reader.view(from, runId, ({ run }) => sayingOf(run));
    if (!said) return undecided('The run that was to judge is not kept any more.');
    const { name, ended, finding, problem } = said;
    if (!ended) return { pending: { runId, writes: [], committed: () => {} } };
    const { costUsd } = await costOfRun(runtime, { tenant: from.tenant, runId });
    const judgement = finding ? verdictOf(name, finding) : undecided(problem, name);
    return costUsd > 0 ? { ...judgement, costUsd } : judgement;
  }
}

function sayingOf(run: Run) {
  const name = String(run.facts.metadata?.[JUDGE_MARK] ?? 'unknown');
  const isDone = run.ended === 'completed';
  const problem = isDone
    ? 'The run that was to judge gave no verdict: it must end with one { satisfied, confidence?, evidence? }.'
    : `The run that was to judge ended as ${run.ended}${run.error ? `: ${run.error.code}` : ''}.`;
  const finding = isDone ? findFinding(finalOutputs(run)) : undefined;
  return { name, ended: run.ended, finding, problem };
}

/** Others are told what readers are, and nothing that is sensitive. */
function inputsFor({ goalId, objective, objectiveVersion, run }: JudgeRequest, spec: VerifierSpec): JsonObject {
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
