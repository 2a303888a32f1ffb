import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { fixed, node, register, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { killableHosts } from '../support/killed.ts';
import { MAIL_LOGIN, MailServer } from '../support/mail-server.ts';
import { storesFor } from '../support/stores.ts';

const TYPE = 'core.openwop.integration.email-send';
const SENDERS = 'alerts@example.com,@reports.example';

function mailOf(port: number, login = MAIL_LOGIN) {
  const user = `${login.user}:${encodeURIComponent(login.password)}`;
  return readConfig({ smtpUrl: `smtp://${user}@127.0.0.1:${port}`, smtpSenders: SENDERS }, {}).mail;
}

function portsOf(values: Record<string, unknown>) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, fixed(value)]));
}

describe.each(storesFor('mail'))('mail, on %s', (kind) => {
  let server: MailServer;
  let host: TestHost;
  beforeAll(async () => {
    server = await MailServer.open();
    host = await startTestHost(kind, inject('postgresUrl'), { mail: mailOf(server.port) });
  });
  afterAll(async () => {
    await host?.stop();
    await server?.close();
  });
  beforeEach(() => void server.letters.splice(0));

  const editor = () => host.as('editor');

  async function send(inputs: object, config: object = {}, settings: object = {}) {
    const values = { to: 'ann@example.com', subject: 'Überfällig', text: 'How are you?', ...inputs };
    const sender = node('mail', TYPE, {
      config: { from: 'Alerts <alerts@example.com>', ...config },
      inputs: portsOf(values),
      settings,
    });
    const runId = await editor().run(await register(editor(), workflow([sender])));
    return { runId, run: await editor().ended(runId) };
  }

  it('goes out once, logged in, with an identity of its own', async () => {
    const { run } = await send({ cc: ['bo@example.com'], bcc: 'cy@example.com', html: '<p>How are you?</p>' });
    expect(run).toMatchObject({ status: 'completed' });
    const [letter, ...more] = server.letters;
    expect(more).toEqual([]);
    expect(letter).toMatchObject({
      from: 'alerts@example.com',
      to: ['ann@example.com', 'bo@example.com', 'cy@example.com'],
      user: MAIL_LOGIN.user,
    });
    const { outputs } = run.nodeStates.mail;
    expect(outputs).toEqual({
      sent: true,
      provider: 'smtp',
      messageId: letter!.headers.get('message-id'),
      idempotencyKey: expect.any(String),
    });
    expect(outputs.messageId).toBe(`<${outputs.idempotencyKey}@example.com>`);
    expect(letter!.headers.get('subject')).toMatch(/^=\?UTF-8\?/);
    expect(letter!.headers.get('auto-submitted')).toBe('auto-generated');
    expect(letter!.headers.has('bcc')).toBe(false);
    expect(letter!.raw).not.toContain('cy@example.com');
  });

  it('that is put off is sent again as the same message', async () => {
    server.refusals.push(451);
    const { run } = await send({}, {}, { retry: { maxRetries: 2, delayMs: 1 } });
    expect(run).toMatchObject({ status: 'completed', nodeStates: { mail: { outputs: { sent: true } } } });
    const identity = run.nodeStates.mail.outputs.messageId;
    const tried = [server.turnedAway.at(-1)!, ...server.letters];
    expect(tried.map(({ headers }) => headers.get('message-id'))).toEqual([identity, identity]);
  });

  it('that is refused fails the node at once, or is an outcome where that is wanted', async () => {
    server.refusals.push(554, 554);
    const { run } = await send({}, {}, { retry: { maxRetries: 2, delayMs: 1 } });
    expect(run).toMatchObject({ status: 'failed', error: { code: 'mail_refused' } });
    const tolerant = await send({}, { fallbackOnFailure: true });
    expect(tolerant.run.nodeStates.mail.outputs).toMatchObject({ sent: false, error: expect.stringContaining('554') });
    expect(server.letters).toEqual([]);
  });

  it('to some who are not known goes to the others, and says so', async () => {
    server.unknown.add('gone@example.com');
    const { run } = await send({ to: ['gone@example.com', 'ann@example.com'] });
    expect(run.nodeStates.mail.outputs).toMatchObject({ sent: true, rejected: ['gone@example.com'] });
    expect(server.letters[0]!.to).toEqual(['ann@example.com']);
  });

  it('goes out in no name but those that the operator lets send', async () => {
    const { run } = await send({}, { from: 'ceo@example.com' });
    expect(run).toMatchObject({ status: 'failed', error: { code: 'egress_denied' } });
    expect((await send({}, { from: 'Weekly@Reports.Example' })).run.status).toBe('completed');
    expect(server.letters.map(({ from }) => from)).toEqual(['Weekly@reports.example']);
  });

  it('is not sent again by a replay', async () => {
    const { runId } = await send({});
    const replay = await editor().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    expect(await editor().ended(replay.body.runId)).toMatchObject({ status: 'completed' });
    expect(server.letters).toHaveLength(1);
  });
});

describe('a host', () => {
  const { start, follow, kill, newStore } = killableHosts();

  it('that dies before it knows that a message was taken sends the same message again', async () => {
    const server = await MailServer.open();
    const environment = {
      ...(await newStore('sqlite')),
      CAPSTAN_SMTP_URL: `smtp://127.0.0.1:${server.port}`,
      CAPSTAN_SMTP_SENDERS: SENDERS,
    };
    let speak = (): void => {};
    server.silence = new Promise((resolve) => {
      speak = resolve;
    });
    const first = await start(environment);
    const inputs = portsOf({ to: 'b@example.com', subject: 'x', text: 'y' });
    const sender = node('mail', TYPE, { config: { from: 'alerts@example.com' }, inputs });
    const arrival = server.next();
    const runId = await first.as('editor').run(await register(first.as('editor'), workflow([sender])));
    await arrival;
    await kill(first);
    speak();
    const second = await follow(environment);
    const { status, nodeStates } = await second.as('editor').ended(runId);
    expect(status).toBe('completed');
    const { messageId } = nodeStates.mail.outputs;
    expect(server.letters.map(({ headers }) => headers.get('message-id'))).toEqual([messageId, messageId]);
    await second.stop();
    await server.close();
  });

  it('without a mail server says that it does not serve mail', async () => {
    const host = await startTestHost('sqlite', undefined);
    const inputs = portsOf({ to: 'b@example.com', subject: 'x', text: 'y' });
    const sender = node('mail', TYPE, { config: { from: 'a@example.com' }, inputs });
    const editor = host.as('editor');
    const runId = await editor.run(await register(editor, workflow([sender])));
    expect(await editor.ended(runId)).toMatchObject({ status: 'failed', error: { code: 'capability_not_provided' } });
    await host.stop();
  });
});
