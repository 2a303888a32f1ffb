import { variablesOf } from '../../../engine/models/prompt-text.ts';
import { parsePromptRef } from '../../../protocol/ai/prompts.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { findTool } from '../../../runtime/tools.ts';
import { redactText } from '../../../system/redaction.ts';
import { ENGINES, type PackIdentity } from './chain-pack.ts';
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
import { type CountedUse, countUses, runsOfUse, type UsedRow } from './mining-records.ts';
import { isGood, isMostlyGood } from './outcomes.ts';
import { packIdentity } from './pack-identity.ts';
import { counted, named } from './phrases.ts';
import { AGENT_PREFIX, INLINE_PREFIX, inlineSystemPrompt } from './run-facts.ts';

const PERSONA_CHARS_MAX = 200;

/** Finds prompts under which models use the same tools, and drafts an agent that may use exactly these. */
export async function* findToolUsers(mining: MiningContext): AsyncGenerator<Found> {
  const { runtime, selection, rules, outcomes } = mining;
  const uses = await runtime.store.read<CountedUse>(countUses(selection, BEGINNING_MIN, HABITS_MAX));
  for (const counts of uses) {
    const tools = JSON.parse(counts.tools) as string[];
    const of = { kind: 'agent-pack', what: `using ${named(tools)} under the same prompt` } as const;
    if (counts.runs < rules.supportMin) {
      yield needsMore(of, counts.runs, rules.supportMin, 'run');
      continue;
    }
    const all = await runtime.store.read<UsedRow>(runsOfUse(selection, counts, EVIDENCE_MAX));
    const ended = await outcomes.of(all.map(({ run_id }) => run_id));
    const rows = all.filter(({ run_id }) => isGood(ended.get(run_id) ?? { status: 'expired' }));
    const bad = all.length - rows.length;
    const use = { ...counts, runs: counts.runs - bad };
    if (use.runs < rules.supportMin || !isMostlyGood([...ended.values()])) {
      yield {
        ...of,
        reason: 'ended-badly',
        message: `${bad} of ${all.length} runs failed or were not what people wanted`,
      };
      continue;
    }
    const key = JSON.stringify(['agent', use.prompt, tools]);
    yield {
      ...of,
      key,
      support: use.runs,
      evidence: rows.map(({ run_id, workflow_id, node_id }) => ({
        id: run_id,
        runId: run_id,
        why: `${node_id} of ${workflow_id} used ${named(tools)}.`,
      })),
      draft: () => draftAgent(mining, key, use, rows),
    };
  }
}

async function draftAgent(
  mining: MiningContext,
  key: string,
  use: CountedUse,
  rows: readonly UsedRow[],
): Promise<Draft | HeldBackDraft> {
  const tools = JSON.parse(use.tools) as string[];
  const systemPrompt = await promptText(mining, use.prompt, rows[0]!, tools);
  // A redacted prompt would be another prompt.
  if (systemPrompt === undefined) {
    return { reason: 'useless', message: 'an agent would be no different, or its prompt has variables' };
  }
  const isShowable = redactText(systemPrompt) === systemPrompt && mining.redact(systemPrompt) === systemPrompt;
  if (!isShowable) return { reason: 'personal-data', message: 'the prompt contains secrets or personal data' };
  const nodes = new Set(rows.map(({ node_id }) => node_id));
  const identity = await packIdentity(mining, key, [...nodes].slice(0, 1));
  const title = `Make an agent of ${named(nodes)}`;
  return {
    artifact: agentPackOf(identity, rows[0]!.node_id, systemPrompt, tools),
    title,
    rationale: [
      `${counted(use.runs, 'run')} of ${named(rows.map(({ workflow_id }) => workflow_id))} gave a model the same ` +
        `system prompt, and it used the same ${counted(tools.length, 'tool')}: ${named(tools)}.`,
      'The agent may use these and no others.',
      `Among them ${named(rows.map(({ run_id }) => run_id))}.`,
    ].join(' '),
    preview: async () => ({ kind: 'agent-pack', ...(await effectOf(mining, tools, rows)) }),
  };
}

/** The text of a library prompt, of an inline prompt, or of an agent that may use more tools than it does. */
async function promptText(
  { runtime, prompts, packs, subject }: MiningContext,
  prompt: string,
  row: UsedRow,
  tools: readonly string[],
): Promise<string | undefined> {
  const target = parsePromptRef(prompt);
  if (target) {
    const found = await prompts.find(subject, target);
    // The prompt of an agent is not rendered, so one with variables cannot be used.
    return found && variablesOf(found.template).length === 0 ? found.template.text : undefined;
  }
  if (prompt.startsWith(AGENT_PREFIX)) {
    const found = await packs.agent(subject, prompt.slice(AGENT_PREFIX.length));
    const { toolAllowlist: allowed = [] } = found?.manifest ?? {};
    // An agent that uses all its tools would gain nothing.
    return allowed.some((tool) => !tools.includes(tool)) ? found?.systemPrompt : undefined;
  }
  const run = await runtime.reader.row(subject, row.run_id);
  const plan = run && (await runtime.plans.find(run.workflow_owner, run.workflow_id, run.workflow_version));
  return prompt.startsWith(INLINE_PREFIX) ? inlineSystemPrompt(plan, row.node_id) : undefined;
}

function agentPackOf(
  { name, version }: PackIdentity,
  persona: string,
  systemPrompt: string,
  tools: readonly string[],
): JsonObject {
  return {
    name,
    version,
    engines: ENGINES,
    runtime: { language: 'remote', entry: 'pack.json' },
    agents: [
      {
        agentId: `${name}.default`,
        persona: persona.slice(0, PERSONA_CHARS_MAX),
        modelClass: 'general',
        systemPrompt,
        toolAllowlist: [...tools],
      },
    ],
  };
}

/** What the agent could do: its tools, and the cost of runs so far. It gets no secrets. */
async function effectOf(
  { runtime, subject, outcomes }: MiningContext,
  tools: readonly string[],
  rows: readonly UsedRow[],
): Promise<JsonObject> {
  const reached: JsonObject[] = [];
  for (const name of tools) {
    const tool = await findTool(runtime.tools, subject, name);
    const facts = tool && { description: tool.description, transport: tool.transport };
    reached.push({ name, isThere: tool !== undefined, ...facts });
  }
  const costs = await outcomes.costs(rows.map(({ run_id }) => run_id));
  const sum = costs.reduce((total, cost) => total + cost, 0);
  return {
    tools: reached,
    secrets: [],
    cost: { runs: costs.length, meanUsd: costs.length === 0 ? 0 : sum / costs.length, maxUsd: Math.max(0, ...costs) },
  };
}
