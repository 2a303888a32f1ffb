import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { node, register, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { fromGitHub, fromSlack, ISSUE_OPENED, type Sent, send } from '../support/senders.ts';
import { onStoresAtOnce } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** The delivery log of triggers: what came of every request, and nothing of what was in it. */

type Body = Answer['body'];

const TRIGGERS = '/v1/host/capstan/triggers';
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** A workflow with a trigger of GitHub that takes issues with a number. */
async function hooked(api: Api, config: object = {}): Promise<Body> {
  const trigger = {
    id: 'hook',
    type: 'webhook' as const,
    config: { scheme: 'github', filter: "body.action != 'closed'", inputs: { number: 'body.issue.number' }, ...config },
  };
  const workflowId = await register(api, workflow([node('a')], [], { triggers: [trigger] }));
  const { body } = await api.get(`${TRIGGERS}?workflowId=${workflowId}`);
  return (await api.post(`${TRIGGERS}/${body.items[0].id}:rotate`, { secret: SECRET })).body;
}

const from = (delivery: string, payload: object = ISSUE_OPENED): Sent => fromGitHub(SECRET, payload, { delivery });

async function logOf(api: Api, { id }: Body, query = ''): Promise<Body[]> {
  const { status, body, text } = await api.get(`${TRIGGERS}/${id}/deliveries${query}`);
  expect(status, text).toBe(200);
  return body.items;
}

/** The log once it has so many lines: all but started runs are written a moment later. */
const logWith = (api: Api, trigger: Body, lines: number): Promise<Body[]> =>
  until(
    () => logOf(api, trigger),
    ({ length }) => length >= lines,
  );

onStoresAtOnce('the delivery log of a trigger', (host, kind) => {
  const editor = () => host().as('editor');

  it('has what came of each request, newest first', async () => {
    const trigger = await hooked(editor());
    const first = await send(trigger.url, from('delivery-1'));
    expect(await logOf(editor(), trigger), 'the run and its line are one').toHaveLength(1);
    for (const sent of [
      from('delivery-1'),
      from('delivery-2', { action: 'closed' }),
      from('delivery-3', { action: 'opened' }),
    ]) {
      await send(trigger.url, sent);
    }
    const [invalid, ignored, duplicate, started] = await logWith(editor(), trigger, 4);
    const { runId } = first.body;
    const line = { id: expect.stringMatching(/^tdl-/), triggerId: trigger.id, at: expect.any(String) };
    expect(started).toEqual({ ...line, outcome: 'started', deliveryId: 'delivery-1', runId });
    expect(duplicate).toEqual({ ...line, outcome: 'duplicate', deliveryId: 'delivery-1', runId });
    expect(ignored).toEqual({ ...line, outcome: 'ignored', deliveryId: 'delivery-2' });
    const reason = { code: 'validation_error', field: 'inputs.number' };
    expect(invalid).toEqual({ ...line, outcome: 'invalid', deliveryId: 'delivery-3', reason });
  });

  it('counts what strangers send, in one line for each reason', async () => {
    const trigger = await hooked(editor());
    const wrong = fromGitHub('another secret', ISSUE_OPENED);
    const answers = await Promise.all(Array.from({ length: 25 }, () => send(trigger.url, wrong)));
    for (const answer of answers) expectRefusal(answer, 404, 'not_found');
    await send(`${trigger.url}x`, from('to-nobody'));
    const counted = (total: number) =>
      until(
        () => logOf(editor(), trigger),
        ([line]) => (line?.count ?? 0) >= total,
      );
    await counted(25);
    await send(trigger.url, wrong);
    expect(await counted(26)).toEqual([
      {
        id: expect.any(String),
        triggerId: trigger.id,
        at: expect.any(String),
        outcome: 'refused',
        reason: { code: 'signature_invalid' },
        count: 26,
      },
    ]);
  });

  it('counts each request once, whichever hosts it was sent to', async () => {
    const other = kind === 'postgres' ? await host().another() : undefined;
    const trigger = await hooked(editor());
    const urls = [trigger.url, other ? `${other.url}${new URL(trigger.url).pathname}` : trigger.url];
    const wrong = fromGitHub('another secret', ISSUE_OPENED);
    const total = 40;
    // A few at a time, so that the hosts write one after the other, and at the same time.
    for (let sent = 0; sent < total; sent += 4) {
      await Promise.all([0, 1, 0, 1].map((turn) => send(urls[turn]!, wrong)));
      await until(
        () => logOf(editor(), trigger),
        ([line]) => line?.count === sent + 4,
      );
    }
    expect(await logOf(editor(), trigger)).toMatchObject([{ outcome: 'refused', count: total }]);
    await other?.stop();
  });

  it('says that a trigger has no secret yet, or is switched off, and that a challenge was answered', async () => {
    const slack = { id: 'hook', type: 'webhook' as const, config: { scheme: 'slack' } };
    const definition = workflow([node('a')], [], { triggers: [slack] });
    const workflowId = await register(editor(), definition);
    const [trigger] = (await editor().get(`${TRIGGERS}?workflowId=${workflowId}`)).body.items;
    const challenge = fromSlack(SECRET, { type: 'url_verification', challenge: 'abc' });
    await send(trigger.url, challenge);
    await logWith(editor(), trigger, 1);
    await editor().post(`${TRIGGERS}/${trigger.id}:rotate`, { secret: SECRET });
    await send(trigger.url, challenge);
    await logWith(editor(), trigger, 2);
    const off = { ...definition, id: workflowId, triggers: [{ ...slack, enabled: false }] };
    expect((await editor().post(WORKFLOWS, off)).status).toBe(201);
    await send(trigger.url, challenge);
    const log = await logWith(editor(), trigger, 3);
    expect(log.map(({ outcome, reason }) => [outcome, reason?.code])).toEqual([
      ['refused', 'trigger_disabled'],
      ['challenge', undefined],
      ['refused', 'secret_missing'],
    ]);
  });

  it('is listed page by page, and by outcome', async () => {
    const trigger = await hooked(editor());
    for (let count = 0; count < 5; count++) await send(trigger.url, from(`delivery-${count}`));
    await send(trigger.url, from('delivery-0'));
    const all = await logWith(editor(), trigger, 6);
    const paged: Body[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const more: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await editor().get(`${TRIGGERS}/${trigger.id}/deliveries?limit=4${more}`);
      paged.push(...body.items);
      cursor = body.nextCursor;
    }
    expect(paged).toEqual(all);
    expect((await logOf(editor(), trigger, '?outcome=started')).map(({ deliveryId }) => deliveryId)).toEqual(
      [4, 3, 2, 1, 0].map((number) => `delivery-${number}`),
    );
    for (const wrong of ['?outcome=lost', '?limit=0', '?cursor=x']) {
      expectRefusal(await editor().get(`${TRIGGERS}/${trigger.id}/deliveries${wrong}`), 400, 'validation_error');
    }
  });

  it('belongs to its tenant and goes with its trigger, and keeps nothing of a request', async () => {
    const trigger = await hooked(editor());
    const path = `${TRIGGERS}/${trigger.id}/deliveries`;
    const payload = { action: 'closed', note: 'the-content-of-a-request' };
    const sent = from('delivery-kept', payload);
    await send(trigger.url, sent);
    await logWith(editor(), trigger, 1);
    expect(await logOf(host().as('viewer'), trigger)).toHaveLength(1);
    for (const who of ['other', 'workspace', 'test'] as const) {
      expectRefusal(await host().as(who).get(path), 404, 'not_found');
    }
    expectRefusal(await host().as('nothing').get(path), 403, 'forbidden');
    expectRefusal(await host().anonymous.get(path), 401, 'unauthenticated');
    const { dataFolder, databaseUrl } = host().config;
    const kept = await everythingAtRest(dataFolder, databaseUrl);
    expect(kept).toContain('delivery-kept');
    expect(kept).not.toContain('the-content-of-a-request');
    expect(kept).not.toContain(sent.headers['x-hub-signature-256']!.slice('sha256='.length));
    expect((await editor().request('DELETE', `${WORKFLOWS}/${trigger.workflowId}`)).status).toBe(204);
    expectRefusal(await editor().get(path), 404, 'not_found');
    if (databaseUrl !== undefined) {
      expect(await everythingAtRest(dataFolder, databaseUrl)).not.toContain('delivery-kept');
    }
  });
});
