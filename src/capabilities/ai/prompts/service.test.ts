import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { unique } from '../../../../test/support/definitions.ts';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { openSqlite } from '../../../store/sqlite.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { PROMPT_TABLES } from './records.ts';
import { type Author, promptService } from './service.ts';

/** What other families build on: versions put in and taken back by something that was decided, not by a request. */

const folder = freshFolder();
const clock = new ManualClock();
const store = await openSqlite({ folder: folder.path, clock, migrations: PROMPT_TABLES });
afterAll(async () => {
  await store.close();
  folder.remove();
});

const audited: string[] = [];
const prompts = promptService({ runtime: { store, clock }, settings: {} } as unknown as Host, {
  audit: {
    record: ({ actor, action, target, details }) => {
      audited.push([actor, action, target, details?.version ?? ''].join(' ').trim());
      return [];
    },
  },
});

const subject = { tenant: 'alpha', tenantName: 'alpha', principal: 'ada', issuer: 'host', lane: 'user' };
const ada: Author = { subject };
const nothing = { also: () => [] };
const template = (more: Partial<PromptTemplate> = {}): PromptTemplate => ({
  templateId: unique('prompt'),
  version: '1.0.0',
  kind: 'system',
  text: 'You are calm.',
  ...more,
});
const latestOf = async ({ templateId }: PromptTemplate): Promise<string | undefined> =>
  (await prompts.find(subject, { templateId }))?.template.version;

describe('a version that was taken back', () => {
  it('leaves the one before it as the latest, and can be put in again as it was', async () => {
    const first = template();
    const second = { ...first, version: '1.1.0', text: 'You are wry.' };
    await prompts.install(ada, first, nothing);
    await prompts.install(ada, second, nothing);
    expect(await latestOf(first)).toBe('1.1.0');
    expect(await prompts.withdraw(ada, second, () => [])).toBeUndefined();
    expect(await latestOf(first)).toBe('1.0.0');
    expect(await prompts.find(subject, { templateId: first.templateId, version: '1.1.0' })).toBeUndefined();
    expect(await prompts.install(ada, { ...second, text: 'Other' }, nothing)).toMatchObject({ refused: 'conflict' });
    await prompts.install(ada, second, nothing);
    expect(await latestOf(first)).toBe('1.1.0');
    expect(await prompts.withdraw(ada, first, () => [])).toBeUndefined();
    expect(await latestOf(first)).toBe('1.1.0');
  });

  it('takes the template with it when it was the only one', async () => {
    const only = template();
    await prompts.install(ada, only, nothing);
    await prompts.withdraw(ada, only, () => []);
    expect(await latestOf(only)).toBeUndefined();
    expect(await prompts.withdraw(ada, only, () => [])).toMatchObject({ refused: 'not_found' });
    expect(await prompts.install(ada, { ...only, version: '0.1.0' }, nothing)).not.toHaveProperty('refused');
    expect(await latestOf(only)).toBe('0.1.0');
  });

  it('is on the record, as everything else is', async () => {
    const one = template();
    const { templateId } = one;
    audited.length = 0;
    await prompts.install(ada, one, nothing);
    await prompts.install(ada, { ...one, version: '2.0.0' }, nothing);
    await prompts.withdraw(ada, { templateId, version: '2.0.0' }, () => []);
    await prompts.remove(ada, templateId, () => []);
    expect(audited).toEqual([
      `ada prompt.create ${templateId} 1.0.0`,
      `ada prompt.update ${templateId} 2.0.0`,
      `ada prompt.withdraw ${templateId} 2.0.0`,
      `ada prompt.remove ${templateId}`,
    ]);
  });
});

describe('what is written together with a change', () => {
  it('is written with it or not at all', async () => {
    const one = template();
    const refused = { sql: 'DELETE FROM prompts WHERE 1 = 0', params: [], expect: 1, keeps: 'something else' };
    await expect(prompts.install(ada, one, { also: () => [refused] })).rejects.toThrow('something else');
    expect(await latestOf(one)).toBeUndefined();
    await prompts.install(ada, one, nothing);
    await expect(prompts.withdraw(ada, one, () => [refused])).rejects.toThrow('something else');
    expect(await latestOf(one)).toBe('1.0.0');
  });
});

describe('a template that comes with the host', () => {
  it('is put in once, whatever a later start brings under the same version', async () => {
    const one = template();
    await prompts.installShared(one);
    await prompts.installShared({ ...one, text: 'You are wry.' });
    expect((await prompts.find(subject, { templateId: one.templateId }))?.template.text).toBe('You are calm.');
    await prompts.installShared({ ...one, version: '1.1.0', text: 'You are wry.' });
    expect((await prompts.find(subject, { templateId: one.templateId }))?.template).toMatchObject({
      text: 'You are wry.',
      meta: { source: 'host' },
    });
  });
});
