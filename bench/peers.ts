/**
 * Capstan beside its peers: one durable step for each run, flushed to the disk before it is acknowledged. All of them
 * run on this machine at once and get the load in turn. `npm run bench -- peers` measures them and writes
 * docs/performance.md; `peerOptions` has what else can be asked for.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Load, type Loaded, load, type Way } from './load.ts';
import { type BenchPostgres, LazyPostgres } from './postgres.ts';
import { coresOfOthers, cpuOfTree, untilQuiet } from './processor.ts';
import { type Provenance, provenance } from './provenance.ts';
import { type BenchServer, KEY, start, startCapstan, startLimit } from './servers.ts';
import { median } from './statistics.ts';

const CONCURRENCY = 32;
/** Processor time for each run, relative to the limit program, may grow by this much without a word. */
const REGRESSION_MAX = 1.1;
const PEERS = join(import.meta.dirname, 'peers');
/** A project with a workflow of one durable step. */
const OWN_NODES = join(import.meta.dirname, 'own-nodes');
const ONE_EFFECT = 'bench-step';

/** What was measured of one program. Each list has a value for each round. */
export interface PeerResult {
  readonly name: string;
  readonly about: string;
  readonly way: Way;
  readonly runsPerSecond: number[];
  /** Milliseconds from the request to the known end of a run, one run after the other. */
  readonly aloneP50Ms: number[];
  readonly p99Ms: number[];
  /** Processor time of the program and its database for each run, in microseconds, under load. */
  readonly cpuPerRunUs: number[];
}

/** What a whole measurement found. */
export interface PeerReport extends Provenance {
  readonly rounds: number;
  readonly seconds: number;
  readonly concurrency: number;
  /** Cores that others used in each round. */
  readonly othersCores: number[];
  readonly peers: readonly PeerResult[];
}

interface Peer {
  readonly name: string;
  readonly about: string;
  readonly way: Way;
  readonly workflowId?: string;
  readonly key?: string;
  start(postgres: () => Promise<BenchPostgres>): Promise<Measured>;
}

/** A program that runs, and whose processor time is whose. */
interface Measured {
  readonly url: string;
  readonly cpuMs: () => number;
  stop(): Promise<void>;
}

function measured(server: BenchServer, postgres?: BenchPostgres): Measured {
  const roots = [server.pid, ...(postgres ? [postgres.pid] : [])];
  return {
    url: server.url,
    cpuMs: () => roots.reduce((sum, pid) => sum + cpuOfTree(pid), 0),
    stop: server.stop,
  };
}

const program =
  (file: string): Peer['start'] =>
  async () =>
    measured(await start((folder) => [join(PEERS, file), folder], {}, { ending: 'SIGTERM' }));

const programOnPostgres =
  (file: string, database: string): Peer['start'] =>
  async (postgresOf) => {
    const postgres = await postgresOf();
    const url = await postgres.createDatabase(database);
    return measured(await start(() => [join(PEERS, file), url], {}, { ending: 'SIGTERM' }), postgres);
  };

function versionOf(name: string): string {
  const { dependencies } = JSON.parse(readFileSync(join(PEERS, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return dependencies[name]!;
}

/** Everything that can be measured. Those in `bench/peers` need `npm ci --ignore-scripts` there. */
const PEER_TABLE: readonly Peer[] = [
  {
    name: 'limit, two commits',
    about: 'a program of a page that writes the rows of a run with the same flush, without rules, checks or audit',
    way: 'call',
    start: async () => measured(await startLimit(2)),
  },
  {
    name: 'limit, three commits',
    about: 'the same, with a commit for the step alone',
    way: 'call',
    start: async () => measured(await startLimit(3)),
  },
  {
    name: 'limit, polled',
    about: 'the one with two commits, where callers start runs and poll for their end',
    way: 'ended',
    start: async () => measured(await startLimit(2)),
  },
  {
    name: 'Capstan, SQLite',
    about: 'as `capstan serve` runs; a run is one pure node',
    way: 'call',
    start: async () => measured(await startCapstan()),
  },
  {
    name: 'Capstan, polled',
    about: 'on SQLite, where callers start runs and poll for their end, as the protocol has it',
    way: 'ended',
    start: async () => measured(await startCapstan()),
  },
  {
    name: 'Capstan, PostgreSQL',
    about: 'as `capstan serve` with DATABASE_URL runs',
    way: 'call',
    start: async (postgresOf) => {
      const postgres = await postgresOf();
      const url = await postgres.createDatabase('capstan');
      return measured(await startCapstan({ DATABASE_URL: url }), postgres);
    },
  },
  {
    name: 'Capstan, effect',
    about: 'on SQLite; a run is one node of own code with one `effect`',
    way: 'call',
    workflowId: ONE_EFFECT,
    start: async () => measured(await startCapstan({}, ['--project', OWN_NODES])),
  },
  {
    name: 'Capstan, effect, PostgreSQL',
    about: 'the same with DATABASE_URL',
    way: 'call',
    workflowId: ONE_EFFECT,
    start: async (postgresOf) => {
      const postgres = await postgresOf();
      const url = await postgres.createDatabase('capstan_effect');
      return measured(await startCapstan({ DATABASE_URL: url }, ['--project', OWN_NODES]), postgres);
    },
  },
  {
    name: 'Restate',
    about: `${versionOf('@restatedev/restate-server')}: its server and a service with one \`ctx.run\``,
    way: 'called',
    start: program('restate.ts'),
  },
  {
    name: 'DBOS',
    about: `${versionOf('@dbos-inc/dbos-sdk')}: a workflow with one step, on PostgreSQL`,
    way: 'called',
    start: programOnPostgres('dbos.ts', 'dbos'),
  },
  {
    name: 'pg-boss',
    about: `${versionOf('pg-boss')}: a job that is sent, fetched and completed, on PostgreSQL`,
    way: 'called',
    start: programOnPostgres('pg-boss.ts', 'pgboss'),
  },
  {
    name: 'LangGraph',
    about: `${versionOf('@langchain/langgraph')}: a graph of one node with its SQLite checkpointer`,
    way: 'called',
    start: program('langgraph.ts'),
  },
];

/** What `npm run bench -- peers` understands. */
export interface PeerOptions {
  readonly rounds: number;
  /** How long each program gets the load in a round. */
  readonly seconds: number;
  /** How long to wait for quiet cores before a round. */
  readonly patienceMs: number;
  /** The beginnings of the names of those to measure. */
  readonly only: readonly string[];
  /** Other OpenWOP hosts. */
  readonly hosts: readonly { readonly url: string; readonly key: string; readonly workflowId: string }[];
  /** The folder that the page is written to, if not that of the repository. */
  readonly docs: string | undefined;
}

/** Reads the options from the command line. */
export function peerOptions(args: readonly string[]): PeerOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '5' },
      patience: { type: 'string', default: '60' },
      only: { type: 'string', multiple: true, default: [] },
      docs: { type: 'string' },
      host: { type: 'string', multiple: true, default: [] },
      key: { type: 'string', default: KEY },
      workflow: { type: 'string', default: 'conformance-noop' },
    },
  });
  return {
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    patienceMs: Number(values.patience) * 1_000,
    only: values.only,
    docs: values.docs,
    hosts: values.host.map((url) => ({ url, key: values.key, workflowId: values.workflow })),
  };
}

/** Rounds of load before the first: V8 has compiled what a host of some size needs after tens of thousands of runs. */
export const WARM_UPS = 4;

/** Measures all of them in turn, round by round. */
export async function measurePeers(options: PeerOptions): Promise<PeerReport> {
  const postgres = new LazyPostgres();
  const contestants: { peer: Peer; server: Measured; result: PeerResult }[] = [];
  const othersCores: number[] = [];
  try {
    for (const peer of chosen(options)) {
      const server = await peer.start(() => postgres.get());
      const lists = { runsPerSecond: [], aloneP50Ms: [], p99Ms: [], cpuPerRunUs: [] };
      contestants.push({ peer, server, result: { name: peer.name, about: peer.about, way: peer.way, ...lists } });
      await load(loadOf(peer, server, CONCURRENCY, options.seconds * WARM_UPS));
      await load(loadOf(peer, server, 1, (options.seconds / 5) * WARM_UPS));
    }
    for (let round = 1; round <= options.rounds; round++) {
      await untilQuiet(options.patienceMs);
      const { cores } = await coresOfOthers(async () => {
        for (const each of contestants) console.log(`  round ${round}: ${await measureOne(each, options.seconds)}`);
      });
      othersCores.push(cores);
      console.log(`  round ${round}: others used ${cores.toFixed(2)} cores`);
    }
  } finally {
    for (const { server } of contestants) await server.stop();
    await postgres.stop();
  }
  return {
    ...provenance(),
    rounds: options.rounds,
    seconds: options.seconds,
    concurrency: CONCURRENCY,
    othersCores,
    peers: contestants.map(({ result }) => result),
  };
}

function loadOf(peer: Peer, { url }: Measured, concurrency: number, seconds: number): Load {
  const { way, workflowId = 'conformance-noop', key = KEY } = peer;
  return { url, key, way, concurrency, seconds, workflowId };
}

async function measureOne(
  { peer, server, result }: { peer: Peer; server: Measured; result: PeerResult },
  seconds: number,
): Promise<string> {
  const before = server.cpuMs();
  const together: Loaded = await load(loadOf(peer, server, CONCURRENCY, seconds));
  const cpuPerRunUs = ((server.cpuMs() - before) * 1_000) / together.runs;
  const alone: Loaded = await load(loadOf(peer, server, 1, seconds / 5));
  result.runsPerSecond.push(together.runsPerSecond);
  result.p99Ms.push(together.p99Ms);
  result.cpuPerRunUs.push(cpuPerRunUs);
  result.aloneP50Ms.push(alone.p50Ms);
  const figures = [
    `${together.runsPerSecond.toFixed(0)} runs/s`,
    `p99 ${together.p99Ms.toFixed(1)} ms`,
    `${cpuPerRunUs.toFixed(0)} µs of processor for each run`,
    `alone p50 ${alone.p50Ms.toFixed(2)} ms`,
  ];
  return `${peer.name.padEnd(22)} ${figures.join(', ')}`;
}

function chosen({ only, hosts }: PeerOptions): Peer[] {
  const others = hosts.map(
    ({ url, key, workflowId }): Peer => ({
      name: url,
      about: 'an OpenWOP host',
      way: 'ended',
      key,
      workflowId,
      start: async () => ({ url, cpuMs: () => Number.NaN, stop: async () => {} }),
    }),
  );
  const wanted = PEER_TABLE.filter(({ name }) => only.length === 0 || only.some((start) => name.startsWith(start)));
  if (existsSync(join(PEERS, 'node_modules'))) return [...wanted, ...others];
  const own = wanted.filter(({ way }) => way !== 'called');
  if (own.length < wanted.length)
    console.log('  peers are left out: run `npm ci --ignore-scripts` in bench/peers to have them');
  return [...own, ...others];
}

/** Measures Capstan against the limit program alone, as somebody does before merging. */
export async function benchRegression(args: readonly string[]): Promise<void> {
  const only = ['limit, two', 'Capstan, SQLite'];
  const options: PeerOptions = { ...peerOptions(args), only };
  console.log(`\nCapstan against the limit program, ${options.rounds} rounds of ${options.seconds} s each`);
  const now = shares(await measurePeers(options));
  console.log(`  runs/s: ${now.runs.toFixed(2)} of the limit; processor for each run: ${now.cpu.toFixed(2)} times it`);
  const recorded = join(import.meta.dirname, '../docs/performance/peers.json');
  if (!existsSync(recorded)) return;
  const then = shares(JSON.parse(readFileSync(recorded, 'utf8')) as PeerReport);
  const isSlower = now.cpu > then.cpu * REGRESSION_MAX;
  console.log(
    `  recorded: ${then.runs.toFixed(2)} and ${then.cpu.toFixed(2)}${isSlower ? ': this is a regression' : ''}`,
  );
  if (isSlower) process.exitCode = 1;
}

/** What Capstan does of what the limit program does, round by round, and what it costs: the medians. */
function shares({ peers }: PeerReport): { readonly runs: number; readonly cpu: number } {
  const [limit, own] = ['limit, two commits', 'Capstan, SQLite'].map((wanted) =>
    peers.find(({ name }) => name === wanted),
  );
  const share = (of: (peer: PeerResult) => readonly number[]): number =>
    median(of(own!).map((value, round) => value / of(limit!)[round]!));
  return { runs: share(({ runsPerSecond }) => runsPerSecond), cpu: share(({ cpuPerRunUs }) => cpuPerRunUs) };
}
