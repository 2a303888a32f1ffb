import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { line, node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, clarification, waitingRun } from '../support/interrupts.ts';
import { sitAt, type Typing } from '../support/tty.ts';

/**
 * Goal: the command is good company at a terminal. Method: it runs on streams that say they are one; what a terminal
 * would show of what it sends is read, and typed to. The screen in the docs is the one that is seen here.
 */

const DOCS = fileURLToPath(new URL('../../docs/cli.md', import.meta.url));
const SCREEN = /(<!-- a screen from test\/blackbox\/terminal.test.ts -->\n```text\n)[\s\S]*?(\n```)/;
const CHOICE = '[q]uit? ';

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost('sqlite', undefined);
});
afterAll(() => host?.stop());

const owner = () => host.as('owner');
const environment = (more: Record<string, string> = {}) => ({
  CAPSTAN_URL: host.url,
  CAPSTAN_KEY: KEYS.owner.key,
  CAPSTAN_CONFIG: '/nowhere',
  ...more,
});

function sit(command: string, typing?: readonly Typing[], more?: Record<string, string>) {
  return sitAt(command.split(' '), environment(more), typing);
}

describe('capstan approvals review', () => {
  it('says when there are no open interrupts', async () => {
    expect(await sit('approvals review')).toMatchObject({ code: 0, screen: 'There are no open interrupts.\n' });
  });

  it('goes through what is open, as the docs show it', async () => {
    const refund = workflow([approval('refund', { title: 'Refund 40 EUR?', description: 'Order 1042 came broken.' })]);
    const colour = workflow([clarification('ask', [{ id: 'colour', question: 'Which colour?' }])]);
    const asked = await waitingRun(owner(), await register(owner(), colour));
    const waiting = await waitingRun(owner(), await register(owner(), refund));
    const { code, screen } = await sit('approvals review', [
      [CHOICE, 'a\r'],
      ['Reason (optional): ', 'the photo shows it\r'],
      [CHOICE, 'x\r'],
      [CHOICE, 'a\r'],
      ['Which colour? ', 'bluf\x7fe\r'],
    ]);
    expect(code).toBe(0);
    expect(await owner().ended(waiting.runId)).toMatchObject({ status: 'completed' });
    expect((await owner().ended(asked.runId)).nodeStates.ask.outputs).toEqual({ answers: { colour: 'blue' } });

    const shown = `$ capstan approvals review\n${screen.trimEnd()}`
      .replaceAll(waiting.runId, 'run-0mw4x2c1h0001')
      .replaceAll(asked.runId, 'run-0mw4x2c1h0000')
      .replaceAll(/open for .*/g, 'open for 2 min');
    const docs = readFileSync(DOCS, 'utf8');
    expect(docs).toMatch(SCREEN);
    await expect(docs.replace(SCREEN, (_all, before, after) => before + shown + after)).toMatchFileSnapshot(DOCS);
  });

  it('leaves alone what is skipped, and all that comes after the person has left', async () => {
    const id = await register(owner(), workflow([approval('gate')]));
    const runs = [await waitingRun(owner(), id), await waitingRun(owner(), id)];
    expect(
      (
        await sit('approvals review', [
          [CHOICE, 's\r'],
          [CHOICE, 'q\r'],
        ])
      ).code,
    ).toBe(3);
    const left = await sit('approvals review', [[CHOICE, '\x03']]);
    expect(left).toMatchObject({ code: 2, screen: expect.stringContaining('Nothing was changed.') });
    for (const { runId } of runs) {
      expect((await owner().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-approval');
      await owner().post(`/v1/runs/${runId}/cancel`, {});
    }
  });

  it('says why the host refuses an answer, and goes on', async () => {
    const ask = async (gate: ReturnType<typeof approval>): Promise<string> =>
      (await waitingRun(owner(), await register(owner(), workflow([gate])))).runId;
    const mine = await ask(approval('mine'));
    const others = await ask(approval('others', { approversList: ['nobody'] }));
    const { code, screen } = await sit('approvals review', [
      [CHOICE, 'a\r'],
      ['Reason (optional): ', '\r'],
      [CHOICE, 'r\r'],
      ['Reason (optional): ', 'no\r'],
    ]);
    expect(code).toBe(3);
    expect(screen).toContain('(forbidden)');
    expect(screen).toContain(`Answered mine of ${mine}.`);
    expect((await owner().get(`/v1/runs/${others}`)).body.status).toBe('waiting-approval');
  });
});

describe('a terminal', () => {
  it('has colours, unless NO_COLOR or a dumb terminal asks for none', async () => {
    const runId = await owner().run(await register(owner(), workflow([node('a'), node('b')], line('a', 'b'))));
    await owner().ended(runId);
    const get = async (more?: Record<string, string>) => (await sit(`runs get ${runId}`, [], more)).sent;
    expect(await get()).toContain('\x1b[32mcompleted\x1b[0m');
    for (const more of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) expect(await get(more)).not.toContain('\x1b');
  });

  it('shows how far a run is while it is followed, and nothing of that is left', async () => {
    const id = await register(owner(), workflow([node('a'), approval('gate')], line('a', 'gate')));
    const { runId } = await waitingRun(owner(), id);
    const answer: Typing = ['waiting for an answer: gate', ''];
    const following = sitAt(['events', runId, '--follow'], environment(), [answer]);
    await owner().post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
    const { code, sent, screen } = await following;
    expect(code).toBe(0);
    for (const line of ['0 done · running: a', '1 done · running: gate']) expect(sent).toContain(line);
    expect(screen).not.toContain(' done · ');
    expect(screen).toContain('run.completed');
    expect((await sit(`events ${runId} --follow`, [], { TERM: 'dumb' })).sent).not.toContain(' done · ');
    expect((await sit(`events ${runId} --follow --json`)).sent).not.toContain(' done · ');
  });

  it('does not show a key that is typed', async () => {
    const typed: Typing[] = [['Key for', `${KEYS.viewer.key}\r`]];
    const { code, sent } = await sit(`login ${host.url}`, typed, {
      CAPSTAN_CONFIG: `${host.config.dataFolder}/c.json`,
    });
    expect(code).toBe(0);
    expect(sent).not.toContain(KEYS.viewer.key);
  });
});
