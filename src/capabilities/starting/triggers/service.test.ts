import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callerAs } from '../../../../test/support/capability-host.ts';
import { openServiceHost, type ServiceHost } from '../../../../test/support/service-host.ts';
import { performWithRival } from '../../../../test/support/starters.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { RotateTriggerRequest, Trigger } from '../../../protocol/starting/triggers.ts';
import { type Decide, perform, unchanged } from '../../../runtime/change.ts';
import { EventTriggers } from './reactions.ts';
import { findByPath, TRIGGER_TABLES, type TriggerRow } from './records.ts';
import type { WantedTrigger } from './rules.ts';
import { pathHashOf, triggerSealer, validSecrets } from './secrets.ts';
import { TriggerService } from './service.ts';

const ORIGIN = 'https://host.example';
const WORKFLOW = 'wf';
const ada = callerAs('ada');
const GITHUB: WantedTrigger = { type: 'webhook', isEnabled: true, config: { scheme: 'github' } };
const PLAIN: WantedTrigger = { type: 'webhook', isEnabled: true, config: { scheme: 'path' } };
const EVENT: WantedTrigger = {
  type: 'event',
  isEnabled: true,
  config: {},
  eventType: 'run.failed',
};

let opened: ServiceHost;
let triggers: TriggerService;
let audited: string[];
beforeEach(async () => {
  opened = await openServiceHost({ tables: TRIGGER_TABLES });
  audited = [];
  triggers = triggersSealedBy(undefined);
});
afterEach(() => opened.close());

function triggersSealedBy(secret: string | undefined): TriggerService {
  const { runtime } = opened.host;
  const audit = {
    entry: ({ action }: { readonly action: string }) => {
      audited.push(action);
      return unchanged(undefined);
    },
  };
  return new TriggerService(runtime, {
    audit,
    sealer: triggerSealer(runtime.store, secret),
    events: new EventTriggers(runtime),
  });
}

async function done<T>(decide: Decide<T>): Promise<T> {
  const outcome = await perform(opened.host.runtime, decide);
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome;
}
const declare = (wanted: Record<string, WantedTrigger>, caller = ada) =>
  done(() => triggers.synchronize(caller.subject, WORKFLOW, new Map(Object.entries(wanted))));
const list = (caller = ada): Promise<Trigger[]> => triggers.list(caller, {}, 100, ORIGIN);
async function declared(trigger: WantedTrigger): Promise<Trigger> {
  await declare({ t: trigger });
  return (await list())[0]!;
}
const rotate = (id: string, request: RotateTriggerRequest = {}) =>
  done(() => triggers.rotate(ada, id, request, ORIGIN));
async function rowAt(url: string | undefined): Promise<TriggerRow | undefined> {
  const path = url?.split('/').at(-1) ?? '';
  return (await opened.store.read<TriggerRow>(findByPath(pathHashOf(path))))[0];
}

describe('the triggers of a workflow', () => {
  it('are those of its definition: only what differs is changed', async () => {
    await declare({ hook: GITHUB, failed: EVENT });
    expect(audited).toEqual(['trigger.create', 'trigger.create']);
    const before = await list();
    await declare({ hook: GITHUB, failed: EVENT });
    expect(await list()).toEqual(before);
    await declare({ failed: { ...EVENT, isEnabled: false } });
    expect((await list()).map(({ name, enabled }) => [name, enabled])).toEqual([['failed', false]]);
    expect(audited.slice(2).sort()).toEqual(['trigger.remove', 'trigger.replace']);
    await declare({});
    expect(await list()).toEqual([]);
  });

  it('keep their URL while they are declared, but not as something else in between', async () => {
    const { url } = await declared(GITHUB);
    await declare({ t: { ...GITHUB, isEnabled: false } });
    expect((await list())[0]).toMatchObject({ url, enabled: false });
    await declare({ t: EVENT });
    expect(await rowAt(url)).toBeUndefined();
    await declare({ t: GITHUB });
    expect((await list())[0]!.url).not.toBe(url);
  });

  it('lose their secret with another sender, and keep their URL', async () => {
    const { id, url } = await declared(GITHUB);
    await rotate(id, { secret: 'a-secret-of-github' });
    await declare({ t: { ...GITHUB, config: { scheme: 'stripe' } } });
    expect((await list())[0]).toMatchObject({ id, url, scheme: 'stripe', hasSecret: false });
  });

  it('of a tenant and of its workspaces are not mixed up', async () => {
    const inTeam = { ...ada, subject: { ...ada.subject, workspace: 'team' } };
    const inBeta = { ...ada, subject: { ...ada.subject, tenant: 'beta' } };
    for (const caller of [ada, inTeam, inBeta]) await declare({ t: GITHUB }, caller);
    await declare({}, inTeam);
    expect(await list(inTeam)).toEqual([]);
    const [[own], [other]] = [await list(), await list(inBeta)];
    expect(await triggers.find(ada, other!.id, ORIGIN)).toMatchObject({ refused: 'not_found' });
    expect(await triggers.rotate(inBeta, own!.id, {}, ORIGIN)).toMatchObject({ refused: 'not_found' });
  });

  it('show their URL only to those who may change them', async () => {
    const { id, url } = await declared(GITHUB);
    expect(url).toMatch(new RegExp(`^${ORIGIN}/v1/host/capstan/hooks/[0-9a-f]{64}$`));
    const viewer = callerAs('vic', 'viewer');
    expect(await triggers.find(viewer, id, ORIGIN)).not.toHaveProperty('url');
    expect((await list(viewer))[0]).not.toHaveProperty('url');
  });
});

describe('rotating', () => {
  it('makes a secret that is shown once, or takes one that is not shown', async () => {
    const { id } = await declared(GITHUB);
    const made = await rotate(id);
    expect(made).toMatchObject({ hasSecret: true, secret: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(await triggers.find(ada, id, ORIGIN)).not.toHaveProperty('secret');
    expect(await rotate(id, { secret: 'a-secret-of-github' })).not.toHaveProperty('secret');
  });

  it('leaves the former secret valid for as long as is asked', async () => {
    const { id, url } = await declared(GITHUB);
    await rotate(id, { secret: 'the-first-secret' });
    await rotate(id, { secret: 'the-second-secret', graceSeconds: 60 });
    const sealer = triggerSealer(opened.store, undefined);
    const validAt = async (ms: number) =>
      validSecrets((await sealer.unseal((await rowAt(url))!.sealed!, id))!, opened.clock.now() + ms);
    expect(await validAt(59_999)).toEqual(['the-second-secret', 'the-first-secret']);
    expect(await validAt(60_000)).toEqual(['the-second-secret']);
    await rotate(id, { secret: 'the-third-secret' });
    expect(await validAt(0)).toEqual(['the-third-secret']);
  });

  it('replaces the URL, and the former one leads to the trigger for as long as is asked', async () => {
    const { id, url } = await declared(PLAIN);
    const { url: next } = await rotate(id, { graceSeconds: 60 });
    expect(next).not.toBe(url);
    expect((await rowAt(url))?.trigger_id).toBe(id);
    opened.clock.advance(60_000);
    expect(await rowAt(url)).toBeUndefined();
    expect((await rowAt(next))?.trigger_id).toBe(id);
  });

  it.each<[string, WantedTrigger, RotateTriggerRequest, object]>([
    ['an event', EVENT, {}, { refused: 'conflict' }],
    [
      'the secret of requests that are not signed',
      PLAIN,
      { secret: 'a-long-secret' },
      { details: { field: 'secret' } },
    ],
    ['both at once', GITHUB, { secret: 'a-long-secret', url: true }, { details: { field: 'url' } }],
  ])('is refused for %s', async (_what, trigger, request, refusal) => {
    const { id } = await declared(trigger);
    expect(await triggers.rotate(ada, id, request, ORIGIN)).toMatchObject(refusal);
  });

  it('is refused for what was sealed under another secret of the host', async () => {
    triggers = triggersSealedBy('a secret of the operator');
    const { id } = await declared(GITHUB);
    const other = triggersSealedBy('another secret of the operator');
    expect(await other.rotate(ada, id, {}, ORIGIN)).toMatchObject({ refused: 'conflict' });
    expect(await other.find(ada, id, ORIGIN)).not.toHaveProperty('url');
  });

  it('decides again if the definition changed in between', async () => {
    const { id } = await declared(GITHUB);
    const rival = () =>
      triggers.synchronize(ada.subject, WORKFLOW, new Map([['t', { ...GITHUB, isEnabled: false } as const]]));
    const { decisions } = await performWithRival(opened, () => triggers.rotate(ada, id, {}, ORIGIN), rival);
    expect(decisions).toBe(2);
    expect(await triggers.find(ada, id, ORIGIN)).toMatchObject({ enabled: false, hasSecret: true });
  });
});
