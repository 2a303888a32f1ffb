/** The Restate server and a service with one durable step: `node restate.ts <folder>`. Its ingress is what is asked. */
import { spawn } from 'node:child_process';
import { createServer as createHttp2Server } from 'node:http2';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { arch, platform } from 'node:os';
import * as restate from '@restatedev/restate-sdk';
import { freePort } from '../../test/support/free-port.ts';

const [folder] = process.argv.slice(2);

const noop = restate.service({
  name: 'noop',
  handlers: { run: async (ctx: restate.Context) => ctx.run('noop', async () => 'done') },
});
const endpoint = createHttp2Server(restate.createEndpointHandler({ services: [noop], logger: () => {} }));
await new Promise<void>((resolve) => {
  endpoint.listen(0, '127.0.0.1', resolve);
});
const { port } = endpoint.address() as AddressInfo;

const [ingress, admin, fabric] = [await freePort(), await freePort(), await freePort()];
const wrapper = createRequire(import.meta.url).resolve('@restatedev/restate-server/package.json');
const binary = createRequire(wrapper).resolve(`@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`);
const server = spawn(binary, ['--base-dir', `${folder}/restate`], {
  env: {
    ...process.env,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
    RESTATE_LISTEN_MODE: 'tcp',
    RESTATE_LOG_FILTER: 'error',
    RESTATE_DISABLE_TELEMETRY: 'true',
    // The default; stated because everybody here flushes before an acknowledgement.
    RESTATE_LOG_SERVER__ROCKSDB_DISABLE_WAL_FSYNC: 'false',
  },
  stdio: ['ignore', 'ignore', 'inherit'],
});
process.once('SIGTERM', () => {
  server.once('exit', () => process.exit(0));
  server.kill('SIGKILL');
});

await untilOk(() => fetch(`http://127.0.0.1:${admin}/health`));
await untilOk(() =>
  fetch(`http://127.0.0.1:${admin}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
  }),
);
const url = `http://127.0.0.1:${ingress}/noop/run`;
await untilOk(() => fetch(url, { method: 'POST' }));
console.log(`listening on ${url}`);

async function untilOk(ask: () => Promise<Response>): Promise<void> {
  for (;;) {
    const answer = await ask().catch(() => undefined);
    if (answer?.ok) return;
    if (server.exitCode !== null) throw new Error(`the Restate server ended with ${server.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
