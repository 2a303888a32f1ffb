import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { chanceOf } from '../support/chance.ts';
import { freshFolder } from '../support/database.ts';
import { fixed, node, register, unique, workflow } from '../support/definitions.ts';
import { KEYS } from '../support/host.ts';
import { bundledFile, compileCache } from '../support/process.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: attempts outlive the workers that make them. Method: real processes, killed and stopped at random, and a file
 * in which they write down what they did to the world.
 */

/** How many attempts; `npm run worker-chaos` makes a thousand. */
const ATTEMPTS = Number(process.env.CAPSTAN_WORKER_ATTEMPTS ?? '20');
const WORKERS = 3;
/** Attempts at the same time in one worker. */
const CONCURRENCY = 4;
/** After so many things done, a worker is killed or stopped. */
const EVERY = 12;
const TEST_MS = 60_000 + ATTEMPTS * 500;

const PYTHON = fileURLToPath(new URL('../../examples/worker.py', import.meta.url));

interface Deed {
  readonly pid: number;
  readonly runId: string;
  readonly did: string;
  readonly idempotencyKey: string;
}

/** Workers of one type, of which there are always as many as at the start. */
class Crew {
  readonly file: string;
  readonly #args: readonly string[];
  readonly #working = new Set<ChildProcess>();
  readonly #stopped = new Set<ChildProcess>();
  harmed = 0;

  constructor(url: string, typeId: string, folder: string) {
    this.file = join(folder, 'deeds');
    writeFileSync(this.file, '');
    this.#args = [bundledFile('worker-process'), url, KEYS.owner.key, typeId, this.file, '1'];
    for (let count = 0; count < WORKERS; count++) this.#add();
  }

  deeds(): Deed[] {
    const lines = readFileSync(this.file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Deed);
  }

  /** Takes one worker away, for good or until all is done, and puts another in its place. */
  harm(chance: () => number): void {
    const unlucky = [...this.#working][Math.floor(chance() * this.#working.size)]!;
    this.#working.delete(unlucky);
    this.harmed++;
    if (chance() < 0.5) unlucky.kill('SIGKILL');
    else {
      unlucky.kill('SIGSTOP');
      this.#stopped.add(unlucky);
    }
    this.#add();
  }

  /** Lets those that were stopped go on: they have slept past their leases. */
  wake(): void {
    for (const sleeper of this.#stopped) sleeper.kill('SIGCONT');
  }

  end(): void {
    for (const child of [...this.#working, ...this.#stopped]) child.kill('SIGKILL');
  }

  #add(): void {
    this.#working.add(spawn(process.execPath, this.#args, { stdio: 'ignore', env: compileCache() }));
  }
}

onEachStore('workers that die', (host, kind) => {
  const owner = (): Api => host().as('owner');

  it(
    'lose no attempt, and none is reported twice',
    async () => {
      const folder = freshFolder();
      const typeId = `${unique('acme')}.charge`;
      await owner().request('PUT', `/v1/host/capstan/workers/types/${typeId}`, { description: 'Charges.' });
      const id = await register(owner(), workflow([node('a', typeId, { inputs: { amount: fixed(5) } })]));
      const runIds = await Promise.all(Array.from({ length: ATTEMPTS }, () => owner().run(id)));
      const crew = new Crew(host().url, typeId, folder.path);
      try {
        const chance = chanceOf(kind === 'sqlite' ? 1 : 2);
        for (let next = EVERY / 2; next < 2 * ATTEMPTS; next += EVERY) {
          await until(
            async () => crew.deeds().length,
            (count) => count >= next,
          );
          crew.harm(chance);
        }
        const ended = [];
        for (const runId of runIds) ended.push(await owner().ended(runId));
        crew.wake();
        const deeds = crew.deeds();
        for (const { runId, status, nodeStates } of ended) {
          expect(status).toBe('completed');
          const own = deeds.filter((deed) => deed.runId === runId);
          // Whoever dies between a deed and its record may do it again, but never as something new.
          expect(new Set(own.map(({ did, idempotencyKey }) => `${did} ${idempotencyKey}`)).size).toBe(2);
          expect(nodeStates.a.outputs).toMatchObject({ amount: 5, idempotencyKey: own[0]!.idempotencyKey });
          const types = (await owner().events(runId)).map(({ type }) => type);
          expect(types.filter((type) => type === 'node.completed')).toHaveLength(1);
        }
        const repeated = deeds.length - 2 * ATTEMPTS;
        expect(repeated).toBeLessThanOrEqual(crew.harmed * CONCURRENCY);
        // The counts are what a reader of the report wants to see.
        process.stdout.write(
          `workers on ${kind}: ${ATTEMPTS} attempts completed once, ${crew.harmed} workers killed or stopped, ${repeated} effects made again under their keys\n`,
        );
        const replay = await owner().post(`/v1/runs/${runIds[0]}:fork`, { mode: 'replay', fromSeq: 0 });
        expect((await owner().ended(replay.body.runId)).status).toBe('completed');
        expect(crew.deeds().filter(({ runId }) => runId === replay.body.runId)).toEqual([]);
      } finally {
        crew.end();
        folder.remove();
      }
    },
    TEST_MS,
  );

  it('may be written in Python: the example needs nothing but the standard library', async () => {
    const document = (await owner().get('/v1/openapi.json')).body;
    const text = readFileSync(PYTHON, 'utf8');
    const used = [...text.matchAll(/send\("(\w+)", f?"([^"]+)"/g)].map(([, method = '', path = '']) => ({
      method: method.toLowerCase(),
      path: `/v1/host/capstan/workers${path}`.replace('{self.id}', '{taskId}').replace('{type_id}', '{typeId}'),
    }));
    expect(used.length).toBeGreaterThan(4);
    for (const { method, path } of used.filter(({ path }) => !path.includes('{verb}'))) {
      expect(document.paths[path]).toHaveProperty(method);
    }
    const worker = spawnPython(host().url);
    if (!worker) return;
    try {
      const served = () => owner().get('/v1/host/capstan/workers/types');
      await until(served, ({ body }) =>
        body.items.some(({ typeId }: { typeId: string }) => typeId === 'example.wordCount'),
      );
      const counted = async (value: unknown) =>
        owner().ended(
          await owner().run(
            await register(owner(), workflow([node('a', 'example.wordCount', { inputs: { text: fixed(value) } })])),
          ),
        );
      const { nodeStates, runId } = await counted('to be or not');
      expect(nodeStates.a.outputs).toEqual({ words: 4, receipt: expect.any(String) });
      const logs = (await owner().events(runId)).filter(({ type }) => type === 'log.appended');
      expect(logs.at(-1).payload).toMatchObject({ message: 'counted', fields: { characters: 12 } });
      expect((await counted(7)).error).toMatchObject({ code: 'validation_error' });
    } finally {
      worker.kill('SIGKILL');
    }
  });
});

/** The example as a process, where the machine has Python. */
function spawnPython(url: string): ChildProcess | undefined {
  if (spawnSync('python3', ['--version']).status !== 0) return undefined;
  const env = { PATH: process.env.PATH ?? '', CAPSTAN_URL: url, CAPSTAN_KEY: KEYS.owner.key };
  return spawn('python3', [PYTHON], { stdio: 'ignore', env });
}
