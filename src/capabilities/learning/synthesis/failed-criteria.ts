import { type PromptTemplate, promptRefText, TEMPLATE_TEXT_MAX } from '../../../protocol/ai/prompts.ts';
import { redactText } from '../../../system/redaction.ts';
import type { ReviewedVerdict } from '../goals/door.ts';
import { latest, revisedText } from './corrected-prompts.ts';
import {
  BEGINNING_MIN,
  type Draft,
  EVIDENCE_MAX,
  type Found,
  type HeldBackDraft,
  type MiningContext,
  needsMore,
} from './habit.ts';
import { isSelected, promptsOfRuns } from './mining-records.ts';
import { versionAfter } from './pack-identity.ts';
import { counted, named } from './phrases.ts';
import type { UsedPrompt } from './records.ts';

/** Verdicts that are read, latest first. */
const VERDICTS_MAX = 1_000;
const GUIDANCE = 'Meet these criteria, which earlier answers missed:';

/** A verdict that says what is missing, and the prompt of the run that it is about. */
interface Missed {
  readonly verdict: ReviewedVerdict;
  readonly prompt: UsedPrompt;
}

/** Finds criteria that the runs of one prompt keep missing, and drafts a version of the prompt that asks for them. */
export async function* findFailedCriteria(mining: MiningContext): AsyncGenerator<Found> {
  const verdicts = ((await mining.verdicts?.latest(mining.subject, VERDICTS_MAX)) ?? []).filter(
    (verdict) => isMissed(verdict) && isSelected(mining.selection, verdict.runId),
  );
  const prompts = await promptsOf(mining, verdicts);
  const missed = verdicts.flatMap((verdict): Missed[] => {
    const [prompt, ...others] = prompts.get(verdict.runId) ?? [];
    // Of several prompts nobody can tell which one is to blame.
    return prompt && others.length === 0 ? [{ verdict, prompt }] : [];
  });
  const byPrompt = Map.groupBy(missed, ({ prompt: { template_id, version } }) => `${template_id}@${version}`);
  for (const all of byPrompt.values()) {
    const found = await latest(mining, all[0]!.prompt);
    if (found) yield* habitOf(mining, found.submitted, all);
  }
}

/** People who say that the goal was reached have overruled the verdict. */
function isMissed({ said, expected, isUndecided, evidence }: ReviewedVerdict): boolean {
  return !said && expected !== true && !isUndecided && evidence.some(({ met }) => !met);
}

async function promptsOf(
  { runtime, subject }: MiningContext,
  verdicts: readonly ReviewedVerdict[],
): Promise<ReadonlyMap<string, UsedPrompt[]>> {
  const runIds = verdicts.map(({ runId }) => runId);
  if (runIds.length === 0) return new Map();
  const rows = await runtime.store.read<UsedPrompt>(promptsOfRuns(subject.tenant, runIds));
  return Map.groupBy(rows, ({ run_id }) => run_id);
}

function* habitOf(mining: MiningContext, template: PromptTemplate, all: readonly Missed[]): Generator<Found> {
  const { supportMin } = mining.rules;
  const of = { kind: 'prompt-template', what: `missing criteria with ${promptRefText(template)}` } as const;
  const unmet = all.flatMap(({ verdict }) => verdict.evidence.filter(({ met }) => !met));
  const byKey = [...Map.groupBy(unmet, ({ key }) => key)].sort(([, one], [, other]) => other.length - one.length);
  const often = byKey.filter(([, each]) => each.length >= supportMin);
  const most = byKey[0]?.[1].length ?? 0;
  if (often.length === 0) {
    if (most >= BEGINNING_MIN) yield needsMore(of, most, supportMin, 'verdict');
    return;
  }
  const keys = new Set(often.map(([key]) => key));
  const telling = all.filter(({ verdict }) => verdict.evidence.some(({ key, met }) => !met && keys.has(key)));
  const evidence = telling
    .map(({ verdict: { runId, judge, evidence: parts } }) => ({
      id: runId,
      runId,
      why: `${judge} found unmet: ${named(parts.flatMap(({ key, met }) => (met ? [] : [key])))}.`,
    }))
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, EVIDENCE_MAX);
  yield {
    ...of,
    key: JSON.stringify(['criteria', template.templateId, template.version]),
    support: telling.length,
    evidence,
    draft: () => draftOf(mining, template, often, telling),
  };
}

async function draftOf(
  mining: MiningContext,
  template: PromptTemplate,
  criteria: readonly (readonly [string, readonly { readonly detail?: string }[]])[],
  telling: readonly Missed[],
): Promise<Draft | HeldBackDraft> {
  const wanted = criteria.map(([key, each]) => instructionOf(key, each));
  const { text, added, suspicious } = revisedText(template.text, wanted, GUIDANCE);
  if (added === 0 && suspicious > 0)
    return { reason: 'unsafe', message: 'the verdicts try to give instructions to the model' };
  if (added === 0) return { reason: 'restates', message: 'the prompt asks for these criteria already' };
  if (Buffer.byteLength(text) > TEMPLATE_TEXT_MAX)
    return { reason: 'invalid', message: 'the prompt would be too long' };
  const taken = await mining.prompts.versions(mining.subject, template.templateId);
  const artifact: PromptTemplate = { ...template, version: versionAfter(template.version, taken), text };
  const keys = named(criteria.map(([key]) => key));
  return {
    artifact,
    title: `Ask ${template.templateId} for what its answers miss: ${keys}`,
    rationale: [
      `${counted(telling.length, 'verdict')} on goals found answers to ${promptRefText(template)} wanting: ${keys}.`,
      `Version ${artifact.version} asks for ${counted(added, 'criterion').replace('criterions', 'criteria')}.`,
      `Among the runs ${named(telling.map(({ verdict }) => verdict.runId))}.`,
    ].join(' '),
    revises: template,
    preview: async () => ({ kind: 'prompt-template', before: template.text, after: text, rendered: [] }),
  };
}

/** The criterion as an instruction, with what judges said most often about it. */
function instructionOf(key: string, evidence: readonly { readonly detail?: string }[]): string {
  const details = Map.groupBy(
    evidence.flatMap(({ detail }) => (detail === undefined || detail.trim() === '' ? [] : [redactText(detail).trim()])),
    (detail) => detail,
  );
  const [most] = [...details].sort(([, one], [, other]) => other.length - one.length);
  return `Meet the criterion "${key}"${most ? `; avoid this: ${most[0]}` : ''}`;
}
