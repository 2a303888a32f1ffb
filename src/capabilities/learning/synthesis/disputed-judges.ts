import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { rubricTag, type Verifier } from '../../../protocol/learning/verifiers.ts';
import type { Annotation } from '../../../protocol/people/annotations.ts';
import { redactText } from '../../../system/redaction.ts';
import type { ReviewedVerdict } from '../goals/door.ts';
import { revisedText } from './corrected-prompts.ts';
import {
  BEGINNING_MIN,
  type Draft,
  EVIDENCE_MAX,
  type Found,
  type HeldBackDraft,
  type MiningContext,
  needsMore,
} from './habit.ts';
import { isSelected } from './mining-records.ts';
import { counted, named } from './phrases.ts';

/** Verdicts that are read, latest first. */
const VERDICTS_MAX = 2_000;
/** From this share of agreement on, disputes are the exception. */
const AGREED_ENOUGH = 0.8;
const RUBRIC_CHARS_MAX = 16_000;
const SAID_CHARS_MAX = 300;
const GUIDANCE = 'People who reviewed earlier verdicts ask for this:';
/** Ids of evidence sort by time: milliseconds with leading zeros. */
const TIME_DIGITS = 15;

/** A verdict that people disputed. */
type Disputed = ReviewedVerdict & { readonly expected: boolean; readonly reviewedAt: number };

/** Finds judges whose verdicts people keep disputing, and drafts a rubric from what they say. */
export async function* findDisputedJudges(mining: MiningContext): AsyncGenerator<Found> {
  const verdicts = (await mining.verdicts?.latest(mining.subject, VERDICTS_MAX)) ?? [];
  const reviewed = verdicts.filter(
    ({ expected, runId }) => expected !== undefined && isSelected(mining.selection, runId),
  );
  for (const [judge, all] of Map.groupBy(reviewed, (verdict) => verdict.judge)) {
    const disputed = all.filter(isDisputed);
    const verifier = disputed.length < BEGINNING_MIN ? undefined : await inUse(mining, judge);
    if (verifier) yield foundAbout(mining, verifier, disputed, all.length);
  }
}

function isDisputed(verdict: ReviewedVerdict): verdict is Disputed {
  return verdict.expected !== undefined && verdict.expected !== verdict.said;
}

/** The verifier, if the judge is the version of it that is in use: disputes of others are about another rubric. */
async function inUse({ verifiers, subject }: MiningContext, judge: string): Promise<Verifier | undefined> {
  const found = await verifiers.get({ subject }, judge.replace(/@\d+$/, ''));
  return isRefusal(found) || `${found.id}@${found.version}` !== judge ? undefined : found;
}

function foundAbout(mining: MiningContext, verifier: Verifier, disputed: readonly Disputed[], reviewed: number): Found {
  const { supportMin } = mining.rules;
  const of = { kind: 'prompt-template', what: `disputing the verdicts of ${verifier.id}@${verifier.version}` } as const;
  if (disputed.length < supportMin) return needsMore(of, disputed.length, supportMin, 'dispute');
  const agreed = reviewed - disputed.length;
  if (agreed / reviewed >= AGREED_ENOUGH) {
    return { ...of, reason: 'useless', message: `people agree with ${agreed} of ${reviewed} verdicts` };
  }
  const evidence = disputed
    .map((verdict) => ({
      id: idOf(verdict),
      runId: verdict.runId,
      why: `The judge said ${inWords(verdict.said)}, people say ${inWords(verdict.expected)}.`,
    }))
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, EVIDENCE_MAX);
  return {
    ...of,
    key: JSON.stringify(['disputed', verifier.id, verifier.version]),
    support: disputed.length,
    evidence,
    draft: () => draftRubric(mining, verifier, disputed, reviewed),
  };
}

function idOf({ reviewedAt, runId }: Disputed): string {
  return `${String(reviewedAt).padStart(TIME_DIGITS, '0')}.${runId}`;
}

function inWords(satisfied: boolean): string {
  return satisfied ? 'satisfied' : 'not satisfied';
}

async function draftRubric(
  mining: MiningContext,
  verifier: Verifier,
  disputed: readonly Disputed[],
  reviewed: number,
): Promise<Draft | HeldBackDraft> {
  const { id, version, rubric } = verifier;
  const tag = rubricTag(id);
  if (rubric === undefined) {
    return { reason: 'useless', message: `it judges by ${verifier.kind}, which only people can change` };
  }
  if (tag === undefined) return { reason: 'invalid', message: 'the id of the verifier is too long' };
  const said = await saidAbout(mining, disputed);
  const { text, added, suspicious } = revisedText(rubric, pointsFrom(disputed, said), GUIDANCE);
  if (added === 0 && suspicious > 0)
    return { reason: 'unsafe', message: 'the comments try to give instructions to the judge' };
  if (added === 0) return { reason: 'restates', message: 'the rubric says this already' };
  if (text.length > RUBRIC_CHARS_MAX) return { reason: 'invalid', message: 'the rubric would be too long' };
  const before = templateOf(verifier, tag, version, rubric);
  return {
    artifact: templateOf(verifier, tag, version + 1, text),
    title: `Revise the rubric of ${id} after ${counted(disputed.length, 'dispute')}`,
    rationale: [
      `People disputed ${disputed.length} of the ${reviewed} verdicts of ${id}@${version} that they reviewed`,
      `(${counted(disputed.filter((verdict) => verdict.said).length, 'time')} it was too lenient,`,
      `${counted(disputed.filter((verdict) => !verdict.said).length, 'time')} too strict).`,
      `The next version of the rubric has ${counted(added, 'point')} more. Among the runs`,
      `${named(disputed.map(({ runId }) => runId))}.`,
    ].join(' '),
    excerpts: new Map(disputed.flatMap((each) => (said.has(each.runId) ? [[idOf(each), said.get(each.runId)!]] : []))),
    revises: before,
    preview: async () => ({ kind: 'prompt-template', before: rubric, after: text, rendered: [] }),
  };
}

function templateOf({ id }: Verifier, tag: string, version: number, text: string): PromptTemplate {
  const templateId = `rubric.${id.toLowerCase()}`;
  return { templateId, version: `${version}.0.0`, kind: 'system', text, name: `Rubric of ${id}`, tags: [tag] };
}

/** What people wrote about runs: their last note or correction. */
async function saidAbout(
  { feedback, subject }: MiningContext,
  disputed: readonly Disputed[],
): Promise<ReadonlyMap<string, string>> {
  const said = new Map<string, string>();
  for (const { runId } of disputed.slice(0, EVIDENCE_MAX)) {
    for await (const page of feedback?.pages({ tenant: subject.tenant, run_id: runId }) ?? []) {
      for (const { author, body } of page) {
        const { note, signal } = JSON.parse(body) as Annotation;
        const text = redactText(signal.correction ?? note ?? '').trim();
        if (text !== '' && author.startsWith(PEOPLE)) said.set(runId, text.slice(0, SAID_CHARS_MAX));
      }
    }
  }
  return said;
}

/** Authors of annotations who are people. */
const PEOPLE = 'principal:';

/** Points for a rubric: what people wrote, and the criteria that speak for or against what they decided. */
function pointsFrom(disputed: readonly Disputed[], said: ReadonlyMap<string, string>): string[] {
  const [lenient, strict] = [disputed.filter((each) => each.said), disputed.filter((each) => !each.said)];
  const written = (all: readonly Disputed[], verb: string): string[] =>
    all.flatMap(({ runId }) => (said.has(runId) ? [`${verb} work of which people say: ${said.get(runId)}`] : []));
  const points = [
    ...written(lenient, 'Reject'),
    ...written(strict, 'Accept'),
    ...commonKeys(lenient, true).map((key) => `Be stricter about "${key}": people rejected work in which it was met`),
    ...commonKeys(strict, false).map((key) => `Do not reject work only because of "${key}": people accepted it`),
  ];
  if (points.length > 0) return points;
  return [
    lenient.length >= strict.length
      ? 'When in doubt, the work is not good enough'
      : 'When in doubt, the work is good enough',
  ];
}

/** The criteria that at least half of the verdicts, and two of them, found met or unmet. */
function commonKeys(verdicts: readonly Disputed[], wasMet: boolean): string[] {
  const keys = verdicts.flatMap(({ evidence }) => [
    ...new Set(evidence.flatMap(({ key, met }) => (met === wasMet ? [key] : []))),
  ]);
  return [...Map.groupBy(keys, (key) => key)]
    .filter(([, each]) => each.length >= BEGINNING_MIN && each.length * 2 >= verdicts.length)
    .map(([key]) => key);
}
