import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { unique } from '../../../../test/support/definitions.ts';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { and, changeOf, type Decide, perform, unchanged } from '../../../runtime/change.ts';
import { KeyedMutex } from '../../../runtime/keyed-mutex.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { openSqlite } from '../../../store/sqlite.ts';
import type { Audit } from '../../trust/audit/door.ts';
import type { Author, PromptVersion } from './door.ts';
import { PROMPT_TABLES } from './records.ts';
import { PromptService } from './service.ts';

const folder = freshFolder();
const clock = new ManualClock();
const store = await openSqlite({ folder: folder.path, clock, migrations: PROMPT_TABLES });
afterAll(async () => {
  await store.close();
  folder.remove();
});

const runtime = { store, clock, mutex: new KeyedMutex() } as Partial<Runtime> as Runtime;
const audited: string[] = [];
const audit: Pick<Audit, 'entry'> = {
  entry: ({ actor, action, target, details }) => {
    audited.push([actor, action, target, details?.version ?? ''].join(' ').trim());
    return unchanged(undefined);
  },
};
const prompts = new PromptService({ runtime }, audit, 'hashed');

const subject = { tenant: 'alpha', tenantName: 'alpha', principal: 'ada', issuer: 'host', lane: 'user' };
const ada: Author = { subject };
const template = (more: Partial<PromptTemplate> = {}): PromptTemplate => ({
  templateId: unique('prompt'),
  version: '1.0.0',
  kind: 'system',
  text: 'You are calm.',
  ...more,
});
const run = <T>(decide: Decide<T>): Promise<T | Refusal> => perform(runtime, decide);
const install = (submitted: PromptTemplate) => run(() => prompts.install(ada, submitted));
const withdraw = (target: PromptVersion) => run(() => prompts.withdraw(ada, target));
const installShared = (submitted: PromptTemplate) => run(() => prompts.installShared(submitted));
const latestOf = async ({ templateId }: Pick<PromptTemplate, 'templateId'>): Promise<string | undefined> =>
  (await prompts.find(subject, { templateId }))?.template.version;

describe('the versions of a template', () => {
  it('are listed if they can be used, newest first', async () => {
    const first = template();
    for (const version of ['1.0.0', '1.1.0', '1.2.0']) await install({ ...first, version, text: version });
    await withdraw({ templateId: first.templateId, version: '1.1.0' });
    const usable = await prompts.usable(subject, first.templateId);
    expect(usable.map(({ version }) => version)).toEqual(['1.2.0', '1.0.0']);
    expect(await prompts.usable({ ...subject, tenant: 'beta' }, first.templateId)).toEqual([]);
  });
});

describe('withdrawing a version', () => {
  it('makes the version before it the latest; the version can be installed again with the same content', async () => {
    const first = template();
    const second = { ...first, version: '1.1.0', text: 'You are wry.' };
    await install(first);
    await install(second);
    expect(await latestOf(first)).toBe('1.1.0');
    expect(await withdraw(second)).toBeUndefined();
    expect(await latestOf(first)).toBe('1.0.0');
    expect(await prompts.find(subject, { templateId: first.templateId, version: '1.1.0' })).toBeUndefined();
    expect(await install({ ...second, text: 'Other' })).toMatchObject({ refused: 'conflict' });
    await install(second);
    expect(await latestOf(first)).toBe('1.1.0');
    expect(await withdraw(first)).toBeUndefined();
    expect(await latestOf(first)).toBe('1.1.0');
  });

  it('removes the template when it was the only version', async () => {
    const only = template();
    await install(only);
    await withdraw(only);
    expect(await latestOf(only)).toBeUndefined();
    expect(await withdraw(only)).toMatchObject({ refused: 'not_found' });
    expect(await install({ ...only, version: '0.1.0' })).not.toHaveProperty('refused');
    expect(await latestOf(only)).toBe('0.1.0');
  });
});

describe('every change', () => {
  it('is audited', async () => {
    const one = template();
    const { templateId } = one;
    audited.length = 0;
    await install(one);
    await run(() => prompts.update(ada, { ...one, version: '2.0.0' }));
    await withdraw({ templateId, version: '2.0.0' });
    await run(() => prompts.remove(ada, templateId));
    expect(audited).toEqual([
      `ada prompt.create ${templateId} 1.0.0`,
      `ada prompt.update ${templateId} 2.0.0`,
      `ada prompt.withdraw ${templateId} 2.0.0`,
      `ada prompt.remove ${templateId}`,
    ]);
  });

  it('is committed with what it is composed with, or not at all', async () => {
    const one = template();
    const broken = { sql: 'DELETE FROM prompts WHERE 1 = 0', params: [], expect: 1, expectation: 'something else' };
    const withBroken = async <T>(decide: Decide<T>) => {
      const change = await decide();
      return isRefusal(change) ? change : and(change, changeOf(undefined, [broken]));
    };
    await expect(run(() => withBroken(() => prompts.install(ada, one)))).rejects.toThrow('something else');
    expect(await latestOf(one)).toBeUndefined();
    await install(one);
    await expect(run(() => withBroken(() => prompts.withdraw(ada, one)))).rejects.toThrow('something else');
    expect(await latestOf(one)).toBe('1.0.0');
  });

  it('is decided again when another change of the template was committed first', async () => {
    const one = template();
    const next = { ...one, version: '2.0.0' };
    let decisions = 0;
    const outcome = await run(async () => {
      decisions++;
      const change = await prompts.install(ada, next);
      if (decisions === 1) await install(one);
      return change;
    });
    expect(outcome).toMatchObject({ template: { version: '2.0.0' } });
    expect(decisions).toBe(2);
    expect(await prompts.versions(subject, one.templateId)).toEqual(['2.0.0', '1.0.0']);
  });
});

describe('updating', () => {
  it('needs a template of the caller, not of the host and not a new one', async () => {
    const shared = template();
    await installShared(shared);
    const update = (submitted: PromptTemplate) => run(() => prompts.update(ada, { ...submitted, version: '9.0.0' }));
    expect(await update(shared)).toMatchObject({ refused: 'forbidden' });
    expect(await install({ ...shared, version: '9.0.0' })).toMatchObject({ refused: 'conflict' });
    expect(await update(template())).toMatchObject({ refused: 'not_found' });
  });
});

describe('a template that comes with the host', () => {
  it('is installed once, whatever content a later start has for the same version', async () => {
    const one = template();
    await installShared(one);
    await installShared({ ...one, text: 'You are wry.' });
    expect((await prompts.find(subject, { templateId: one.templateId }))?.template.text).toBe('You are calm.');
    await installShared({ ...one, version: '1.1.0', text: 'You are wry.' });
    expect((await prompts.find(subject, { templateId: one.templateId }))?.template).toMatchObject({
      text: 'You are wry.',
      meta: { source: 'host' },
    });
  });
});
