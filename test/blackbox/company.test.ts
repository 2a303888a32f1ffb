import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { COMPANY_MODEL, Company, HABITS, INJECTIONS, JUNK, PERSONAL_DATA, PROMPTS } from '../support/company.ts';
import { commitPast, freshFolder } from '../support/database.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { habitNodes, PLANTED_PATH } from '../support/planted-runs.ts';
import { evidenceOf, revise } from '../support/proposals.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { until } from '../support/until.ts';

/**
 * Goal: a careful person would trust the drafts. Method: a made-up company with six habits, of which the drafts are
 * counted; nothing personal and nothing hostile may be in them, whatever the seed.
 */

type Body = Answer['body'];

const SEEDS = [1, 2, 3];
const folder = freshFolder();
afterAll(() => folder.remove());

/** Which habit a draft is of, if any. */
function habitOf({ kind, artifact }: Body): string | undefined {
  if (kind === 'automation' || kind === 'prompt-template') {
    const name = artifact.workflowId ?? artifact.templateId;
    return Object.entries(HABITS).find(([, id]) => id === name)?.[0];
  }
  const types = artifact.chains?.[0].dag.nodes.map(({ typeId }: Body) => typeId).join() ?? '';
  return types.includes(PLANTED_PATH.join()) ? 'chain' : undefined;
}

describe.each(SEEDS)('a company, seed %i', (seed) => {
  let host: TestHost;
  let created: Body[];
  let heldBack: Body[];
  let told: string;
  const api = (): Api => host.as('owner');

  beforeAll(async () => {
    const synthesis = { supportMin: 3, periodMinMs: 3_600_000, timezones: ['UTC'], monthlyUsdMax: 100 };
    const models = [scriptedModel(folder.path, COMPANY_MODEL, { prices: { small: { input: 100, output: 100 } } })];
    // Its past is at a fixed date, which is longer and longer ago.
    const settings = { synthesis, models, retentionMs: 3_650 * 86_400_000 };
    host = await startTestHost('sqlite', undefined, settings, undefined, [habitNodes]);
    const prompt = async (templateId: string, kind = 'system') => {
      const template = { templateId, version: '1.0.0', kind, text: `You are ${templateId}.` };
      expect((await api().post('/v1/prompts', template)).status).toBe(201);
      return template;
    };
    const prompts = {
      corrected: await prompt(PROMPTS.corrected, 'user'),
      edited: await prompt(PROMPTS.edited),
      whole: await prompt(PROMPTS.whole),
      attacked: await prompt(PROMPTS.attacked),
      seldom: await prompt(PROMPTS.seldom),
      oddEdits: await prompt(PROMPTS.oddEdits),
    };
    await commitPast(host.config, new Company('alpha', seed).past(prompts));
    const { body } = await api().post('/v1/host/capstan/proposals:synthesize', {});
    expect(body.scannedRuns).toBe(300);
    ({ created, heldBack } = body);
    const evidence = await Promise.all(created.map(({ id }) => evidenceOf(api(), id)));
    told = JSON.stringify([created, heldBack, evidence]);
  });
  afterAll(() => host?.stop());

  it('has its six habits drafted, and nothing else', () => {
    const found = created.map(habitOf);
    const precision = found.filter(Boolean).length / created.length;
    const recall = new Set(found.filter(Boolean)).size / 6;
    process.stdout.write(
      `company, seed ${seed}: ${created.length} drafts, precision ${precision}, recall ${recall}, ${heldBack.length} held back\n`,
    );
    expect(created.filter((draft) => !habitOf(draft)).map(({ title }) => title)).toEqual([]);
    expect([precision, recall]).toEqual([1, 1]);
  });

  it('has the briefing at half past eight in the morning, in summer and in winter', () => {
    const draft = created.find((each) => habitOf(each) === 'starts');
    expect(draft.artifact).toMatchObject({ cron: '30 8 * * 1-5', timezone: 'Europe/Berlin' });
  });

  it('has what is started twice a day as one schedule', () => {
    const draft = created.find((each) => habitOf(each) === 'twice');
    expect(draft.artifact).toMatchObject({ cron: '0 9,17 * * 1-5', timezone: 'Europe/Berlin' });
  });

  it('has what people change at gates, and what they say about whole runs, as instructions', () => {
    const textOf = (habit: string): string => created.find((each) => habitOf(each) === habit).artifact.text;
    expect(textOf('edited')).toMatch(/- Write "Dear customer," instead of "Hi there,"\.\n$/);
    expect(textOf('whole')).toMatch(/:\n- End with a list of open questions[.!]\n$/);
  });

  it('has what people ask for as one instruction, and no order of an attacker', () => {
    const { text } = created.find((each) => habitOf(each) === 'corrected').artifact;
    expect(text.match(/metric units/g)).toHaveLength(1);
    for (const injection of INJECTIONS) expect(text).not.toContain(injection.slice(-20));
  });

  it('has in the chain what varied as a parameter, what was the same as it was, and nobody by name', () => {
    const [chain] = created.find((each) => habitOf(each) === 'chain').artifact.chains;
    const { properties } = chain.parameters;
    expect(properties.step1_of.examples.toSorted()).toEqual(['legal', 'sales', 'support']);
    expect(chain.dag.nodes[0].config).toEqual({ mode: 'same', of: '{{params.step1_of}}' });
    expect(properties.step5_to).not.toHaveProperty('examples');
  });

  it('is told why the rest is not drafted', () => {
    const reasonOf = (name: string): string | undefined => heldBack.find(({ what }) => what.includes(name))?.reason;
    expect(reasonOf(JUNK.failing)).toBe('ended-badly');
    expect(reasonOf(JUNK.cancelled)).toBe('ended-badly');
    expect(reasonOf(JUNK.flagged)).toBe('ended-badly');
    expect(reasonOf(JUNK.personal)).toBe('personal-data');
    expect(reasonOf(JUNK.attacked)).toBe('unsafe');
    expect(reasonOf(JUNK.seldom)).toBe('needs-more');
    expect(reasonOf(JUNK.oddEdits)).toBe('useless');
    expect(reasonOf(JUNK.inline)).toBe('inline-prompt');
    expect(reasonOf(JUNK.costly)).toBe('costly');
    expect(reasonOf(JUNK.byMachine)).toBeUndefined();
    expect(heldBack).toContainEqual(expect.objectContaining({ kind: 'workflow-chain-pack', reason: 'ended-badly' }));
  });

  it('sees in a preview what a good draft improves and what a bad one harms', async () => {
    const { id, artifact } = created.find((each) => habitOf(each) === 'corrected');
    const preview = async (expression: string): Promise<Body> => {
      const request = { budgetUsd: 1, criteria: [{ key: 'unit', expression }] };
      const begun = await api().post(`/v1/host/capstan/proposals/${id}:preview`, request);
      expect(begun.status, begun.text).toBe(202);
      const look = async (): Promise<Body> => (await api().get(`/v1/host/capstan/previews/${begun.body.id}`)).body;
      return until(look, ({ state }) => state === 'done');
    };
    const good = await preview('outputs.speak.content.contains("km")');
    expect(good.summary).toMatchObject({ runs: 10, nowPass: 10, worse: 0, same: 0 });
    const text = `${artifact.text} Never name a unit.`;
    expect((await revise(api(), id, { artifact: { ...artifact, text } })).status).toBe(200);
    const bad = await preview('outputs.speak.content.contains("km") || outputs.speak.content.contains("miles")');
    expect(bad.summary).toMatchObject({ runs: 10, nowPass: 0, worse: 10, same: 0 });
    process.stdout.write(`company, seed ${seed}: ${good.summary.sentence}; revised: ${bad.summary.sentence}\n`);
    for (const each of PERSONAL_DATA) expect(JSON.stringify([good, bad])).not.toContain(each);
    const { body } = await api().post('/v1/host/capstan/proposals:synthesize', {});
    expect(body.created).toEqual([]);
  });

  it('has no personal data in any draft, its evidence, or what is said about the rest', () => {
    for (const each of PERSONAL_DATA) expect(told).not.toContain(each);
  });
});
