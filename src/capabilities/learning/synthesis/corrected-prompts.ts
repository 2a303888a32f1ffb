import { composePrompt } from '../../../engine/models/prompt-text.ts';
import { type PromptTemplate, promptRefText, TEMPLATE_TEXT_MAX } from '../../../protocol/ai/prompts.ts';
import { type JsonObject, own } from '../../../protocol/format/json.ts';
import type { Annotation } from '../../../protocol/people/annotations.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import { findEvents, type LoggedRow } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { RegisteredPrompt } from '../../ai/prompts/door.ts';
import { editWishes } from './gate-edits.ts';
import {
  BEGINNING_MIN,
  type Draft,
  EVIDENCE_MAX,
  type Found,
  HABITS_MAX,
  type HeldBackDraft,
  type MiningContext,
  needsMore,
} from './habit.ts';
import {
  type CorrectedRow,
  type CountedNode,
  type CountedPrompt,
  correctionsOf,
  countCorrections,
  countUnprompted,
} from './mining-records.ts';
import { versionAfter } from './pack-identity.ts';
import { counted, named } from './phrases.ts';
import { WHOLE_RUN } from './records.ts';
import { inlineSystemPrompt } from './run-facts.ts';
import { isSaidIn, wishesOf } from './wishes.ts';

/** Limits of what corrections may add to a prompt. */
const CORRECTIONS_MAX = 10;
const CORRECTION_CHARS_MAX = 500;
const SHOWN_RUNS = 3;
const SHOWN_CHARS_MAX = 4_000;
const EVENTS_MAX = 200;

/** Finds prompts whose output people keep correcting, and drafts a next version that includes the corrections. */
export async function* findCorrectedPrompts(mining: MiningContext): AsyncGenerator<Found> {
  const { runtime, selection, rules } = mining;
  const prompts = await runtime.store.read<CountedPrompt>(countCorrections(selection, 1, HABITS_MAX));
  for (const prompt of prompts) {
    const found = await latest(mining, prompt);
    if (!found) continue;
    const of = { kind: 'prompt-template', what: `correcting answers to ${promptRefText(found.template)}` } as const;
    const all = await runtime.store.read<CorrectedRow>(correctionsOf(selection, prompt, EVIDENCE_MAX));
    const rows = await correctionsOfText(mining, found, all);
    const support = prompt.corrections - (all.length - rows.length);
    if (rows.length === 0) continue;
    if (rows.length < rules.supportMin) {
      yield needsMore(of, rows.length, rules.supportMin, 'correction');
      continue;
    }
    yield {
      ...of,
      key: JSON.stringify(['corrected', prompt.template_id, prompt.version]),
      support,
      evidence: rows.map(({ annotation_id, run_id, node_id, workflow_id, sequence }) => ({
        id: annotation_id,
        runId: run_id,
        why: whyOf(workflow_id, node_id, sequence),
      })),
      draft: () => draftPrompt(mining, found.submitted, support, rows),
    };
  }
  yield* findInlinePrompts(mining);
}

/** A prompt that is written into a definition has no versions: people are told how to give it some. */
async function* findInlinePrompts({ runtime, selection, subject, rules }: MiningContext): AsyncGenerator<Found> {
  const nodes = await runtime.store.read<CountedNode>(countUnprompted(selection, rules.supportMin, HABITS_MAX));
  for (const { workflow_id, node_id, corrections } of nodes) {
    const current = await runtime.plans.current(subject, workflow_id);
    if (inlineSystemPrompt(current?.plan, node_id) === undefined) continue;
    yield {
      kind: 'prompt-template',
      what: `correcting what ${node_id} of ${workflow_id} gives`,
      reason: 'inline-prompt',
      message:
        `${counted(corrections, 'correction')} of a prompt that is written into the workflow: put it into the prompt ` +
        'library and name it as systemPromptRef of the node, then its corrections become drafts',
    };
  }
}

function whyOf(workflowId: string, nodeId: string, sequence: number | null): string {
  const what = nodeId === WHOLE_RUN ? `a run of ${workflowId} as a whole` : `what ${nodeId} of ${workflowId} gave`;
  return sequence === null ? `Somebody corrected ${what}.` : `Somebody changed ${what} before they accepted it.`;
}

/** Changes that people made more than once: a single one is about its run, not about the prompt. */
function recurring(edits: readonly string[]): string[] {
  const { wishes } = wishesOf(edits);
  return wishes
    .filter(({ support }) => support >= BEGINNING_MIN)
    .flatMap(({ text, support }) => Array(support).fill(text));
}

/** The prompt, if the version is its latest and people may change it: corrections of older versions are about another text. */
export async function latest(
  { prompts, subject }: Pick<MiningContext, 'prompts' | 'subject'>,
  { template_id: templateId, version }: Pick<CountedPrompt, 'template_id' | 'version'>,
): Promise<RegisteredPrompt | undefined> {
  const found = await prompts.find(subject, { templateId });
  return found?.source === 'user' && found.template.version === version ? found : undefined;
}

/** The corrections that are about this text: a workspace may have another one under the same name and version. */
async function correctionsOfText(
  { prompts, subject: { tenant } }: MiningContext,
  { template: { templateId, version }, digest }: RegisteredPrompt,
  rows: readonly CorrectedRow[],
): Promise<CorrectedRow[]> {
  const said: CorrectedRow[] = [];
  for (const [workspace, theirs] of Map.groupBy(rows, (row) => row.workspace ?? undefined)) {
    const seen = await prompts.find({ tenant, workspace }, { templateId, version });
    if (seen?.digest === digest) said.push(...theirs);
  }
  return said.sort((a, b) => (a.annotation_id < b.annotation_id ? 1 : -1));
}

/** What people wrote, by annotation, newest first. */
async function textsOf(
  { feedback, subject, runtime }: MiningContext,
  rows: readonly CorrectedRow[],
): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const run_id of new Set(rows.map((row) => row.run_id))) {
    for await (const page of feedback?.pages({ tenant: subject.tenant, run_id }) ?? []) {
      for (const { annotation_id, kind, body } of page) {
        if (kind === 'correction') texts.set(annotation_id, (JSON.parse(body) as Annotation).signal.correction ?? '');
      }
    }
  }
  const edits = await editWishes(runtime, rows);
  const short = (text: string): string => redactText(text).slice(0, CORRECTION_CHARS_MAX);
  const said = ({ annotation_id: id }: CorrectedRow): string => short(edits.get(id) ?? texts.get(id) ?? '');
  return new Map(rows.map((row) => [row.annotation_id, said(row)]));
}

async function draftPrompt(
  mining: MiningContext,
  template: PromptTemplate,
  corrections: number,
  rows: readonly CorrectedRow[],
): Promise<Draft | HeldBackDraft> {
  const excerpts = await textsOf(mining, rows);
  const edits = rows.filter(({ sequence }) => sequence !== null).map(({ annotation_id: id }) => excerpts.get(id)!);
  const written = rows.filter(({ sequence }) => sequence === null).map(({ annotation_id: id }) => excerpts.get(id)!);
  const { added, text, suspicious } = revisedText(template.text, [...written, ...recurring(edits)]);
  if (Buffer.byteLength(text) > TEMPLATE_TEXT_MAX)
    return { reason: 'invalid', message: 'the prompt would be too long' };
  if (added === 0 && suspicious > 0) {
    return { reason: 'unsafe', message: `${counted(suspicious, 'correction')} try to give instructions to the model` };
  }
  if (added === 0 && written.length === 0) {
    return { reason: 'useless', message: `${counted(edits.length, 'change')} at gates without a common pattern` };
  }
  const taken = await mining.prompts.versions(mining.subject, template.templateId);
  const artifact: PromptTemplate = { ...template, version: versionAfter(template.version, taken), text };
  const runs = new Set(rows.map(({ run_id }) => run_id));
  const isNew = added > 0;
  return {
    artifact: artifact,
    title: `Revise ${template.templateId} after ${counted(corrections, 'correction')}`,
    rationale: [
      `People corrected answers to ${promptRefText(template)} ${counted(corrections, 'time')}, in ` +
        `${counted(runs.size, 'run')} (${named(runs)}), at ${named(rows.map(({ node_id }) => node_id || 'the whole run'))}.`,
      ...(edits.length > 0 ? [`${counted(edits.length, 'change')} of them at gates.`] : []),
      isNew
        ? `Version ${artifact.version} adds ${counted(added, 'instruction')} that they ask for.`
        : 'What they wrote is in the prompt already.',
      ...(suspicious > 0
        ? [`Left out: ${counted(suspicious, 'correction')} that would give orders to the model.`]
        : []),
    ].join(' '),
    excerpts,
    // A version without anything new is a duplicate of the one before.
    ...(isNew ? { revises: template } : {}),
    preview: async (revised) => previewOf(mining, template, revised as PromptTemplate, rows),
  };
}

/** The heading of what corrections ask for. */
const GUIDANCE = 'Follow these instructions, which reviewers of earlier answers asked for:';

/** A prompt with what corrections ask for. */
interface Revised {
  readonly text: string;
  readonly added: number;
  /** Corrections that were left out because they would give orders to the model. */
  readonly suspicious: number;
}

/** Adds what corrections ask for and the text does not say yet, as instructions, the most frequent wish first. */
export function revisedText(text: string, corrections: readonly string[], guidance = GUIDANCE): Revised {
  const { wishes, suspicious } = wishesOf(corrections);
  const added = wishes.filter((wish) => !isSaidIn(text, wish)).slice(0, CORRECTIONS_MAX);
  if (added.length === 0) return { text, added: 0, suspicious };
  const heading = text.includes(guidance) ? [] : ['', guidance];
  const lines = [text.trimEnd(), ...heading, ...added.map((wish) => `- ${wish.text}`), ''];
  return { text: lines.join('\n'), added: added.length, suspicious };
}

async function previewOf(
  mining: MiningContext,
  before: PromptTemplate,
  after: PromptTemplate,
  rows: readonly CorrectedRow[],
): Promise<JsonObject> {
  return {
    kind: 'prompt-template',
    before: before.text.slice(0, SHOWN_CHARS_MAX),
    after: after.text.slice(0, SHOWN_CHARS_MAX),
    rendered: await renderedOn(mining, before, after, rows),
  };
}

/** Both versions, rendered with the values that nodes had, for runs whose log contains those values. */
async function renderedOn(
  { runtime }: MiningContext,
  before: PromptTemplate,
  after: PromptTemplate,
  rows: readonly CorrectedRow[],
): Promise<JsonObject[]> {
  const shown: JsonObject[] = [];
  const [ref, seen] = [promptRefText(before), new Set<string>()];
  for (const { run_id, node_id } of rows) {
    if (shown.length === SHOWN_RUNS) break;
    if (seen.has(run_id)) continue;
    seen.add(run_id);
    const events = await runtime.store.read<LoggedRow>(findEvents([run_id], ['prompt.composed'], EVENTS_MAX));
    const bindings = events
      .map((row) => decodeEvent({ ...row, hidden: null }))
      .flatMap((event) => (event.type === 'prompt.composed' ? event.payload : []))
      .find(({ nodeId, refs }) => nodeId === node_id && refs.includes(ref))?.variableBindings;
    const [first, second] = bindings ? [fill(before, bindings), fill(after, bindings)] : [];
    if (first === undefined || second === undefined) continue;
    shown.push({ runId: run_id, nodeId: node_id, before: first, after: second });
  }
  return shown;
}

function fill(template: PromptTemplate, bindings: JsonObject): string | undefined {
  const composed = composePrompt(
    template,
    ({ name, source }) => {
      const value = redactValue(own(bindings, name));
      return { value, shown: value, trust: source === 'context' ? 'trusted' : 'untrusted' };
    },
    { digest: sha256Hex, redact: redactText },
  );
  return 'problem' in composed ? undefined : composed.shown.slice(0, SHOWN_CHARS_MAX);
}
