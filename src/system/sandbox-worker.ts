import { parentPort, workerData } from 'node:worker_threads';
import quickJsVariant from '@jitl/quickjs-wasmfile-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
} from 'quickjs-emscripten-core';
import { lowerThreadPriority } from './thread-priority.ts';

/**
 * A thread that runs one untrusted program in a JavaScript interpreter compiled to WebAssembly. The program has the
 * language and its inputs, and no access to clock, randomness, network, files or environment.
 */

/** What the thread is started with. */
export interface SandboxThreadData {
  readonly job: SandboxJob;
  /** The compiled interpreter, a `WebAssembly.Module`. */
  readonly interpreter: object;
}

/** The program and its limits. */
export interface SandboxJob {
  /** The body of a function with the parameter `inputs`. */
  readonly code: string;
  /** JSON text. */
  readonly inputs: string;
  /** The fixed time that the program sees (epoch ms); with `seed`, it makes the result reproducible. */
  readonly now: number;
  /** Seed of `Math.random`. */
  readonly seed: number;
  readonly memoryBytes: number;
  readonly resultCharactersMax: number;
}

/** The result as JSON text, or what went wrong. */
export type SandboxResult =
  | { readonly text: string }
  | { readonly problem: 'error' | 'memory' | 'size'; readonly message: string };

const STACK_BYTES = 256 * 1_024;
const MESSAGE_CHARACTERS_MAX = 500;
const PAGE_BYTES = 65_536;
/** Initial memory of the interpreter, and how much of it the interpreter itself uses. */
const FIRST_BYTES = 16 * 1_048_576;
const OWN_BYTES = 5.5 * 1_048_576;

/** The one member that is used here; TypeScript ships its types only with those of browsers. */
declare const WebAssembly: { Memory: new (pages: { initial: number; maximum: number }) => object };
/** The package's types describe its CommonJS build, where the default export is nested one level deeper. */
const variant = quickJsVariant as unknown as QuickJSSyncVariant;

const { job, interpreter } = workerData as SandboxThreadData;
const { code, inputs, now, seed, memoryBytes, resultCharactersMax } = job;

/** Replaces what would differ between two calls: time, time zone, randomness and garbage-collection hooks. */
const PRELUDE = `(() => {
  const Real = Date;
  const at = ${Number(now)};
  function Fixed(...parts) {
    if (!new.target) return new Real(at).toISOString();
    if (parts.length > 1) parts = [Real.UTC(...parts)];
    return Reflect.construct(Real, parts.length === 0 ? [at] : parts, new.target);
  }
  const zone = /^\\d{4}-\\d{2}-\\d{2}T[^Z+]*$/;
  const parse = Real.parse;
  Fixed.parse = (text) => parse(zone.test(text) && !/-\\d{2}:\\d{2}$/.test(text) ? text + 'Z' : text);
  Fixed.UTC = Real.UTC;
  Fixed.now = () => at;
  Fixed.prototype = Real.prototype;
  Real.prototype.constructor = Fixed;
  for (const part of ['FullYear', 'Month', 'Date', 'Day', 'Hours', 'Minutes', 'Seconds', 'Milliseconds']) {
    for (const how of ['get', 'set']) {
      if (how + 'UTC' + part in Real.prototype) Real.prototype[how + part] = Real.prototype[how + 'UTC' + part];
    }
  }
  Real.prototype.getTimezoneOffset = () => 0;
  for (const how of ['toString', 'toLocaleString', 'toDateString', 'toTimeString', 'toLocaleDateString', 'toLocaleTimeString']) {
    Real.prototype[how] = Real.prototype.toISOString;
  }
  globalThis.Date = Fixed;
  let state = ${Number(seed) >>> 0};
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  Object.assign(Math, { random });
  for (const name of ['WeakRef', 'FinalizationRegistry', 'SharedArrayBuffer', 'Atomics', 'performance']) {
    delete globalThis[name];
  }
})();`;

/** Calls the program and serializes its result. A promise is rejected, because it would serialize as `{}`. */
const PROGRAM = `((result) => {
  if (result instanceof Promise) throw new TypeError('The program returned a promise. Return a plain value: asynchronous code is not supported.');
  return JSON.stringify(result ?? null);
})((function (inputs) { 'use strict';\n${code}\n})(JSON.parse(${JSON.stringify(inputs)})))`;

async function run(): Promise<SandboxResult> {
  const quickJs = await newQuickJSWASMModuleFromVariant(
    newVariant(variant, { wasmModule: interpreter, wasmMemory: boundedMemory() }),
  );
  const runtime = quickJs.newRuntime();
  runtime.setMemoryLimit(memoryBytes);
  runtime.setMaxStackSize(STACK_BYTES);
  const context = runtime.newContext();
  context.unwrapResult(context.evalCode(PRELUDE)).dispose();
  const outcome = context.evalCode(PROGRAM, 'code.js');
  return outcome.error ? problemOf(context, outcome.error) : answerOf(context, outcome.value);
}

/** The interpreter limits single allocations; the size of its WebAssembly memory limits all of them together. */
function boundedMemory(): object {
  const bytesMax = Math.max(FIRST_BYTES, OWN_BYTES + memoryBytes);
  return new WebAssembly.Memory({ initial: FIRST_BYTES / PAGE_BYTES, maximum: Math.ceil(bytesMax / PAGE_BYTES) });
}

function answerOf(context: QuickJSContext, value: QuickJSHandle): SandboxResult {
  if (context.typeof(value) !== 'string')
    return { problem: 'error', message: 'The result cannot be serialized as JSON.' };
  const text = context.getString(value);
  if (text.length <= resultCharactersMax) return { text };
  return { problem: 'size', message: `The result has more than ${resultCharactersMax} characters.` };
}

function problemOf(context: QuickJSContext, error: QuickJSHandle): SandboxResult {
  const message = [describe(context, error, 'name'), describe(context, error, 'message')].filter(Boolean).join(': ');
  // QuickJS throws null when there is no memory left for an error object.
  if (/^InternalError: out of memory/.test(message) || context.sameValue(error, context.null)) {
    return { problem: 'memory', message: `The program used more than ${memoryBytes} bytes of memory.` };
  }
  return {
    problem: 'error',
    message: message.slice(0, MESSAGE_CHARACTERS_MAX) || 'The program threw a value without a message.',
  };
}

/** Reads a member of a thrown value if it is a string; other types are ignored, because the program controls them. */
function describe(context: QuickJSContext, error: QuickJSHandle, member: string): string {
  if (context.sameValue(error, context.null)) return '';
  if (context.typeof(error) !== 'object') return member === 'message' ? String(context.dump(error)) : '';
  const value = context.getProp(error, member);
  return context.typeof(value) === 'string' ? context.getString(value) : '';
}

lowerThreadPriority();
run()
  .catch((error: Error): SandboxResult => {
    const isMemory = /memory|allocation/i.test(error.message);
    return {
      problem: isMemory ? 'memory' : 'error',
      message: isMemory ? 'The program used too much memory.' : 'The program crashed the interpreter.',
    };
  })
  .then((answer) => parentPort!.postMessage(answer));
