import { makePlan } from '../../../engine/definition/plan.ts';
import type { PackManifest } from '../../../protocol/ai/packs.ts';
import { PREVIEW_TAG } from '../../../protocol/learning/previews.ts';
import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import { type Configurable, isTerminalStatus } from '../../../protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { and, type Change, changeOf } from '../../../runtime/change.ts';
import { createPreview } from '../../../runtime/fork/create.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import { definitionProblems } from '../../../runtime/validation/definition-problems.ts';
import { insertDefinition, runsOwner } from '../../../store/definitions.ts';
import type { RunRow } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Host } from '../../capability.ts';
import { logPages } from '../../log-pages.ts';
import { placeDraft, type SourceTrace } from './draft.ts';
import type { PreviewRow } from './records.ts';
import { bodyOf } from './stored-preview.ts';

/** The change that starts a preview run, or why there is none. */
type Start = { readonly change: Change<StartedRun> } | { readonly reason: string };

/** Starts the run of a pair, with the draft in place and the rest of the budget. */
export class PreviewStarter {
  readonly #host: Pick<Host, 'runtime' | 'executor'>;

  constructor(host: Pick<Host, 'runtime' | 'executor'>) {
    this.#host = host;
  }

  async start(row: PreviewRow, place: number, leftUsd: number): Promise<Start> {
    const { runtime, executor } = this.#host;
    const { subject, pairs } = bodyOf(row);
    const source = await runtime.reader.row(subject, pairs[place]!.sourceRunId);
    const unfit = source ? unfitness(source) : 'the run has expired';
    const trace = source && unfit === undefined ? await this.#traceOf(source) : undefined;
    if (!source || !trace) return { reason: unfit ?? 'the version of its workflow is gone' };
    const placed = placeDraft(row.kind as ArtifactKind, JSON.parse(row.artifact) as PackManifest, trace);
    if ('reason' in placed) return placed;
    const [problem] = await definitionProblems(placed.definition, runtime);
    if (problem) return { reason: `the draft does not fit in: ${problem.message}` };
    const workflow = this.#workflowFor(row, place, source, trace, placed.definition);
    const created = await createPreview(runtime, {
      source,
      workflow: workflow.pinned,
      preview: row.preview_id,
      overlay: {
        configurable: this.#configurableFor(row, source, leftUsd),
        tags: [PREVIEW_TAG],
        metadata: { previewId: row.preview_id, proposalId: row.proposal_id },
      },
      by: subject,
    });
    return { change: and(executor.startRun(created), changeOf(undefined, workflow.writes)) };
  }

  /** The workflow as it is, or with a definition that only this run has. */
  #workflowFor(row: PreviewRow, place: number, source: RunRow, { plan }: SourceTrace, definition: WorkflowDefinition) {
    if (definition === plan.definition) return { pinned: { owner: source.workflow_owner, plan }, writes: [] };
    const owner = runsOwner(row.tenant, 'preview', row.preview_id);
    const [version, body] = [place + 1, JSON.stringify(definition)];
    const created_at = this.#host.runtime.clock.now();
    const stored = { owner, workflow_id: definition.id, version, digest: sha256Hex(body), body, created_at };
    return { pinned: { owner, plan: makePlan(definition, version) }, writes: [insertDefinition(stored)] };
  }

  /** The options of the source, within the budget and the time that are left. */
  #configurableFor({ deadline_at }: PreviewRow, source: RunRow, leftUsd: number): Configurable {
    const { configurable } = factsOf(source);
    const { budget = {}, runTimeoutMs = Number.POSITIVE_INFINITY } = configurable;
    const leftMs = Math.max(1, deadline_at - this.#host.runtime.clock.now());
    return {
      ...configurable,
      budget: { ...budget, maxCostUsd: Math.min(leftUsd, budget.maxCostUsd ?? leftUsd) },
      runTimeoutMs: Math.min(runTimeoutMs, leftMs),
    };
  }

  async #traceOf(source: RunRow): Promise<SourceTrace | undefined> {
    const { runtime } = this.#host;
    const plan = await runtime.plans.find(source.workflow_owner, source.workflow_id, source.workflow_version);
    if (!plan) return undefined;
    const done = new Set<string>();
    const tools = new Map<string, Set<string>>();
    for await (const page of logPages(runtime, source)) {
      for (const event of page.map(decodeEvent)) {
        if (event.type === 'node.completed') done.add(event.payload.nodeId);
        if (event.type !== 'agent.toolReturned' || event.nodeId === undefined) continue;
        tools.set(event.nodeId, (tools.get(event.nodeId) ?? new Set()).add(event.payload.toolName));
      }
    }
    return { plan, done, tools };
  }
}

/** Why a run cannot be previewed. */
function unfitness(source: RunRow): string | undefined {
  if (isManagement(source.workflow_id)) return 'the run is one of the host itself';
  if (!isTerminalStatus(source.status)) return 'the run has not ended';
  return factsOf(source).fork ? 'the run is a fork' : undefined;
}
