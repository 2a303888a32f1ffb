import { describe, expect, it } from 'vitest';
import { createSandbox } from './sandbox.ts';

const sandbox = createSandbox({ threads: 2 });

/** The result of a program, or what went wrong. */
async function run(code: string, inputs: unknown = {}, timeoutMs = 50_000): Promise<unknown> {
  const job = {
    code,
    inputs: JSON.stringify(inputs),
    now: Date.parse('2026-01-02T03:04:05Z'),
    seed: 7,
    memoryBytes: 16 * 1_048_576,
    resultCharactersMax: 100_000,
  };
  const answer = await sandbox.run('alpha', job, timeoutMs, new AbortController().signal);
  return 'text' in answer ? JSON.parse(answer.text) : answer;
}

// Threads start slowly on a busy machine, and what uses up a stack or the memory takes its time there.
describe('a program', { timeout: 60_000 }, () => {
  it('computes a result from its inputs', async () => {
    expect(await run('return { sum: inputs.a.reduce((x, y) => x + y, 0) };', { a: [1, 2, 3] })).toEqual({ sum: 6 });
    expect(await run('const m = new Map([[1, 2]]); return [...m.entries()];')).toEqual([[1, 2]]);
    expect(await run('// nothing')).toBeNull();
  });

  it('reports its errors', async () => {
    expect(await run('return inputs.absent.member;')).toMatchObject({
      problem: 'error',
      message: expect.stringContaining('TypeError'),
    });
    expect(await run('return (')).toMatchObject({ problem: 'error', message: expect.stringContaining('SyntaxError') });
    expect(await run('throw "no";')).toEqual({ problem: 'error', message: 'no' });
    expect(await run('throw {};')).toMatchObject({ problem: 'error' });
    for (const code of ['return Promise.resolve(1);', 'return (async () => 1)();']) {
      expect(await run(code)).toMatchObject({ problem: 'error', message: expect.stringContaining('promise') });
    }
    expect(await run('const a = {}; a.a = a; return a;')).toMatchObject({ problem: 'error' });
  });

  it('sees a fixed time and a seeded random, wherever and whenever it runs', async () => {
    const code = `return {
      at: [Date.now(), new Date().toISOString(), String(new Date()), new Date(2026, 0, 1, 5).toISOString()],
      local: [new Date(0).getHours(), new Date(0).getTimezoneOffset(), new Date('2026-01-01T00:00').toISOString()],
      chance: [Math.random(), Math.random()],
      real: Object.getPrototypeOf(Date) === Function.prototype && new Date().constructor === Date,
      weak: typeof WeakRef + typeof FinalizationRegistry + typeof performance,
    };`;
    const [one, two] = await Promise.all([run(code), run(code)]);
    expect(one).toEqual(two);
    expect(one).toMatchObject({
      at: [1767323045000, '2026-01-02T03:04:05.000Z', '2026-01-02T03:04:05.000Z', '2026-01-01T05:00:00.000Z'],
      local: [0, 0, '2026-01-01T00:00:00.000Z'],
      real: true,
      weak: 'undefinedundefinedundefined',
    });
  });

  it('has no access to host, network, files, environment or modules', async () => {
    const names = ['process', 'require', 'fetch', 'XMLHttpRequest', 'WebSocket', 'Worker', 'setTimeout', 'console'];
    const more = ['std', 'os', 'Buffer', 'global', 'window', 'Deno', 'WebAssembly', 'SharedArrayBuffer', '__dirname'];
    expect(await run(`return inputs.filter((name) => name in globalThis);`, [...names, ...more])).toEqual([]);
    expect(await run('return Function("return typeof process")() + eval("typeof require");')).toBe(
      'undefinedundefined',
    );
    expect(await run('return this === undefined ? "none" : "some";')).toBe('none');
    expect(await run('return inputs.constructor.constructor("return typeof process")();')).toBe('undefined');
    for (const code of ['import fs from "node:fs";', 'return await import("node:fs");']) {
      expect(await run(code)).toMatchObject({ problem: 'error' });
    }
    expect(await run('import("node:fs").then(() => {}); return 1;')).toBe(1);
  });

  it('cannot affect other programs by changing built-ins', async () => {
    await run('Object.prototype.polluted = true; JSON.stringify = () => "[1]"; Array.prototype.map = null; return 1;');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(await run('return [1].map((x) => x + 1).concat({}.polluted ?? "clean");')).toEqual([2, 'clean']);
    expect(await run('Object.prototype.toJSON = () => undefined; return {};')).toMatchObject({ problem: 'error' });
  });

  it.each([
    ['a list without end', 'const a = []; for (;;) a.push(a.length / 3, a.length / 7);'],
    ['a long text', 'let a = "x"; while (a.length < 1e8) a += a; return a;'],
    ['many texts', 'const a = []; for (;;) a.push("x".repeat(1e5) + a.length);'],
    ['many buffers', 'const a = []; for (;;) a.push(new ArrayBuffer(1e5));'],
    ['a buffer', 'return new Uint8Array(1024 * 1024 * 1024).length;'],
  ])('cannot exceed its memory: %s', async (_what, code) => {
    expect(await run(code)).toMatchObject({ problem: 'memory' });
  });

  it('cannot exceed its memory by catching the error', async () => {
    const megabytes = await run('const a = []; try { for (;;) a.push("x".repeat(1e6)); } catch { return a.length; }');
    expect(megabytes).toBeLessThanOrEqual(16);
  });

  it.each([
    ['by calls', 'const f = () => f() + 1; return f();'],
    ['by its result', 'let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a;'],
  ])('cannot exhaust the stack of the host %s', async (_how, code) => {
    expect(await run(code)).toMatchObject({ problem: 'error' });
  });

  it('has a result of bounded size', async () => {
    expect(await run('let a = "x"; while (a.length < 200_000) a += a; return a;')).toMatchObject({ problem: 'size' });
  });

  it.each([
    ['a loop', 'for (;;) {}'],
    ['a pattern', 'return /^(a+)+$/.test("a".repeat(40) + "b");'],
    ['a loop that catches everything', 'for (;;) { try { for (;;) {} } catch {} }'],
  ])('that does not end is terminated, and does not block others: %s', async (_what, code) => {
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 5);
    expect(await run(code, {}, 300)).toEqual({ problem: 'timeout' });
    clearInterval(ticking);
    // A loop that was blocked all the time turns once, at the end.
    expect(ticks).toBeGreaterThan(1);
  });

  it('waits for a thread, and is dropped when aborted', async () => {
    const job = { code: 'return 1;', inputs: '{}', now: 0, seed: 0, memoryBytes: 4_194_304, resultCharactersMax: 10 };
    expect(await sandbox.run('alpha', job, 1_000, AbortSignal.abort())).toEqual({ problem: 'timeout' });
    const many = await Promise.all(Array.from({ length: 8 }, (_, index) => run('return inputs;', index)));
    expect(many).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

describe('tenants that share the threads', () => {
  const job = { code: '', inputs: '{}', now: 0, seed: 0, memoryBytes: 0, resultCharactersMax: 0 };

  /** A sandbox whose programs end when the test says so. */
  function heldSandbox() {
    const ends: (() => void)[] = [];
    const began: string[] = [];
    const shared = createSandbox({
      threads: 2,
      runProgram: ({ code }) =>
        new Promise((resolve) => {
          began.push(code);
          ends.push(() => resolve({ text: 'null' }));
        }),
    });
    const start = (tenant: string) =>
      shared.run(tenant, { ...job, code: tenant }, 60_000, new AbortController().signal);
    const endNext = async (): Promise<void> => {
      ends.shift()!();
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { start, began, endNext };
  }

  it('leave one for each other, and take turns', async () => {
    const { start, began, endNext } = heldSandbox();
    for (let program = 0; program < 100; program++) void start('noisy');
    await Promise.resolve();
    expect(began).toEqual(['noisy']);
    for (let program = 0; program < 3; program++) void start('quiet');
    await Promise.resolve();
    expect(began).toEqual(['noisy', 'quiet']);
    await endNext();
    await endNext();
    expect(began.filter((tenant) => tenant === 'quiet')).toHaveLength(2);
  });

  it('have a limited number in line', async () => {
    const { start } = heldSandbox();
    for (let program = 0; program < 501; program++) void start('noisy');
    expect(await start('noisy')).toEqual({ problem: 'busy' });
    const others = start('quiet');
    expect(await Promise.race([others, 'runs'])).toBe('runs');
  });
});
