import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { connection, fixed, line, node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { runProgram } from '../support/process.ts';
import { until } from '../support/until.ts';

/** The nodes of a project in a process of their own, beside a host that has none of its code. */

const EXAMPLE = fileURLToPath(new URL('../../examples/project', import.meta.url));
const TYPES = '/v1/host/capstan/workers/types';

describe('capstan worker', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost('sqlite', undefined, { conformance: false });
  });
  afterAll(() => host?.stop());

  it('serves the nodes of a project until it is stopped', { timeout: 60_000 }, async () => {
    const owner = host.as('owner');
    const scopes = ['workers:serve'];
    const { body: issued } = await owner.post('/v1/host/capstan/keys', { name: 'w', scopes, pool: 'billing' });
    const args = [inject('program'), 'worker', '--project', EXAMPLE, '--name', 'one', '--concurrency', '2'];
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, args, { env: { PATH, CAPSTAN_URL: host.url, CAPSTAN_KEY: issued.key } });
    const ended = once(child, 'close');
    try {
      const served = await until(
        async () => (await new Api(host.url, issued.key).get(TYPES)).body.items as { typeId: string; pool: string }[],
        (items) => items.length === 2,
      );
      expect(served.map(({ typeId, pool }) => [typeId, pool]).sort()).toEqual([
        ['acme.fetchInvoice', 'billing'],
        ['acme.remind', 'billing'],
      ]);
      const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key };
      expect(await runProgram(['workflows', 'push', EXAMPLE, '--quiet'], environment)).toEqual({
        code: 0,
        output: 'remind-of-invoice\n',
      });
      const invoice = node('invoice', 'acme.fetchInvoice', { inputs: { number: fixed('2026-1') } });
      const inputs = { customer: connection('invoice', 'customer'), total: connection('invoice', 'total') };
      const reminder = node('reminder', 'acme.remind', { inputs });
      const short = await register(owner, workflow([invoice, reminder], line('invoice', 'reminder')));
      const { status, nodeStates } = await owner.ended(await owner.run(short));
      expect([status, nodeStates.reminder.outputs]).toEqual(['completed', { text: 'Dear Ada, 80 EUR are due.' }]);
    } finally {
      child.kill('SIGTERM');
    }
    expect((await ended)[0]).toBe(0);
  });

  it.each([
    ['no project', ['worker', '/'], 'capstan.config.ts'],
    ['no key', ['worker', EXAMPLE], 'workers:serve'],
  ])('says what is wrong with %s', async (what, args, message) => {
    const environment = { CAPSTAN_CONFIG: '/nowhere', ...(what === 'no key' ? {} : { CAPSTAN_KEY: 'x' }) };
    const { code, err } = await capstan(args, { environment });
    expect([code === 0, err]).toEqual([false, expect.stringContaining(message)]);
  });
});
