import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { fakeSlack } from '../../examples/integrations/fakes.ts';
import { freshDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { KEYS } from '../support/host.ts';
import { killableHosts } from '../support/killed.ts';
import { runProgram } from '../support/process.ts';
import { fromSlack, send } from '../support/senders.ts';
import { until } from '../support/until.ts';

/** Goal: the integrations that people copy work. Method: their own tests, and a host that serves them to fakes. */

const FOLDER = fileURLToPath(new URL('../../examples/integrations', import.meta.url));
const SECRET = '8f742231b10e8888abcd99yyyzzz85a5';
const TRIGGERS = '/v1/host/capstan/triggers';
const { start, stop, newFolder } = killableHosts();
const slack = fakeSlack();
afterAll(() => slack.close());

describe('the integrations', () => {
  it('pass their tests, with a real database', { timeout: 120_000 }, async () => {
    const EXAMPLE_DATABASE_URL = await freshDatabase(inject('postgresUrl'));
    const { code, output } = await runProgram(['test', FOLDER], { EXAMPLE_DATABASE_URL });
    expect(code, output).toBe(0);
    expect(output).toMatch(/pass 8\n.*fail 0\n.*skipped 0\n/s);
  });

  it('take the answer from a button in Slack, once, and e-mails, each once', { timeout: 60_000 }, async () => {
    const port = String(await freePort());
    const host = await start({
      PORT: port,
      CAPSTAN_DATA: newFolder(),
      CAPSTAN_PROJECT: FOLDER,
      CAPSTAN_SHARED_TENANT: 'alpha',
      SLACK_API_URL: await slack.open(),
      SLACK_BOT_TOKEN: 'xoxb-test',
      CAPSTAN_URL: `http://127.0.0.1:${port}`,
      CAPSTAN_KEY: KEYS.owner.key,
    });
    const owner = host.as('owner');
    const triggerOf = async (workflowId: string) =>
      (await owner.get(`${TRIGGERS}?workflowId=${workflowId}`)).body.items[0];
    const pressed = await triggerOf('slack-button');
    await owner.post(`${TRIGGERS}/${pressed.id}:rotate`, { secret: SECRET });
    const runId = await owner.run('ask-in-slack', { inputs: { channel: 'C123456', question: 'Deploy?' } });
    await owner.until(runId, ({ interrupt }) => interrupt !== undefined);
    const [message] = await until(
      async () => slack.asked,
      ({ length }) => length > 0,
    );
    const [approve] = JSON.parse(message!.body).blocks[1].elements;
    const payload = {
      type: 'block_actions',
      user: { id: 'U061F7AUR', username: 'ada' },
      actions: [{ ...approve, block_id: 'Q6g', action_ts: '1548426417.840180' }],
      response_url: 'https://hooks.slack.com/actions/T061EG9R6/1/x',
    };
    const form = (): URLSearchParams => new URLSearchParams({ payload: JSON.stringify(payload) });
    const first = await send(pressed.url, fromSlack(SECRET, form()));
    expect(first.status, first.text).toBe(202);
    expect((await send(pressed.url, fromSlack(SECRET, form()))).body).toMatchObject({ duplicate: true });
    const { status, nodeStates } = await owner.ended(runId);
    expect([status, nodeStates.approval.outputs]).toEqual(['completed', { approved: true, by: 'U061F7AUR' }]);
    expect((await owner.ended(first.body.runId)).nodeStates.answer.outputs).toEqual({ status: 200 });

    const { url } = await triggerOf('on-email');
    const email = {
      FromFull: { Email: 'bo@example.com', Name: 'Bo', MailboxHash: '' },
      MessageStream: 'inbound',
      MessageID: '73e6d360-66eb-11e1-8e72-a8904824019b',
      Subject: 'Re: Order 7',
      TextBody: 'Yes.\n> Shall I?\n',
    };
    const sent = { body: JSON.stringify(email), headers: { 'content-type': 'application/json' } };
    const { body } = await send(url, sent);
    expect((await send(url, sent)).body).toMatchObject({ runId: body.runId, duplicate: true });
    const read = await owner.ended(body.runId);
    expect(read.nodeStates.email.outputs).toEqual({ from: 'bo@example.com', topic: 'Order 7', said: 'Yes.' });
    await stop(host);
  });
});
