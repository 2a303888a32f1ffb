import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { api } from './api.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

const STREAMS = Number(process.argv[3] ?? 2_000);
const STEPS = 40;
/** Together with the steps, much more than a connection holds. */
const TEXT_CHARACTERS = 100_000;
const WATCHED_S = 40;
const CALM_S = 5;
const MB = 1e6;
/** All of them are one key's, which may have 250 unless the operator says otherwise. */
const ROOM = {
  CAPSTAN_INFLIGHT_CAP: '10000',
  CAPSTAN_INFLIGHT_PER_KEY: '10000',
  CAPSTAN_INFLIGHT_PER_TENANT: '10000',
  CAPSTAN_STREAMS_PER_KEY: '10000',
  CAPSTAN_STREAMS_PER_TENANT: '10000',
};

/** Memory of a host while thousands of streams are open that nobody reads. */
export async function benchUnreadStreams(): Promise<void> {
  const size = ((STEPS * TEXT_CHARACTERS) / MB).toFixed(0);
  console.log(`\n${STREAMS} streams of a log of ${size} MB that nobody reads`);
  const host = await startCapstan(ROOM);
  const sockets: Socket[] = [];
  try {
    const runId = await longRun(host);
    await pass(CALM_S);
    const before = await memoryOf(host);
    const heads: string[] = [];
    for (let opened = 0; opened < STREAMS; opened++) sockets.push(await openUnread(host, runId, heads));
    let most = 0;
    for (let second = 0; second < WATCHED_S; second++) {
      most = Math.max(most, (await memoryOf(host)).resident);
      await pass(1);
    }
    const accepted = heads.filter((head) => head.startsWith('HTTP/1.1 200')).length;
    const after = await memoryOf(host);
    const mb = (bytes: number): string => `${(bytes / MB).toFixed(0)} MB`;
    console.log(`  accepted ${accepted}, others ${heads.length - accepted}, still followed ${after.followed}`);
    console.log(`  before ${mb(before.resident)}, at most ${mb(most)}, after ${WATCHED_S} s ${mb(after.resident)}`);
  } finally {
    for (const socket of sockets) socket.destroy();
    await host.stop();
  }
}

const pass = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/** A run that has ended and whose log is long. */
async function longRun(host: BenchServer): Promise<string> {
  const ids = Array.from({ length: STEPS }, (_, index) => `s${index}`);
  const text = { type: 'variable', variableName: 'text' };
  const definition = {
    id: 'long-log',
    name: 'A long log',
    version: '1',
    nodes: ids.map((id) => ({ id, typeId: 'core.identity', name: id, config: {}, inputs: { text } })),
    edges: ids.slice(1).map((id, index) => ({ id: `e${index}`, sourceNodeId: ids[index], targetNodeId: id })),
    variables: [{ name: 'text', type: 'string' }],
  };
  await api(host, 'POST', '/v1/host/capstan/workflows', definition);
  const inputs = { text: 'x'.repeat(TEXT_CHARACTERS) };
  const { runId } = await api(host, 'POST', '/v1/runs', { workflowId: 'long-log', inputs });
  for (;;) {
    const { status } = await api(host, 'GET', `/v1/runs/${runId}`);
    if (status === 'completed') return runId;
    if (status === 'failed') throw new Error('the long run failed');
  }
}

/** Asks for a stream and reads its head, and nothing after it. */
async function openUnread({ url }: BenchServer, runId: string, heads: string[]): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(`GET /v1/runs/${runId}/events HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${KEY}\r\n\r\n`);
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  heads.push(chunk.toString('latin1').slice(0, 20));
  return socket.pause();
}

async function memoryOf({ url }: BenchServer): Promise<{ resident: number; followed: number }> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const read = (name: string): number => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1]);
  return { resident: read('capstan_process_resident_memory_bytes'), followed: read('capstan_runs_followed') };
}
