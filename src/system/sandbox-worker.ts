import { parentPort, workerData } from 'node:worker_threads';
import interpreter from '@jitl/quickjs-wasmfile-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
} from 'quickjs-emscripten-core';

/**
 * A thread that runs one program of a stranger, in an interpreter that is itself compiled to WebAssembly. The program
 * sees the language and what it is given: no clock, no chance, no network, no files, no environment.
 */

/** What to run. All of it comes from whoever wants it done. */
export interface SandboxJob {
  /** The body of a function of `inputs`. */
  readonly code: string;
  /** JSON text. */
  readonly inputs: string;
  /** The time that the program sees, and what its chances are drawn from. */
  readonly now: number;
  readonly seed: number;
  readonly memoryBytes: number;
  readonly resultCharactersMax: number;
}

/** What came of it: the result as JSON text, or what went wrong. */
export type SandboxAnswer =
  | { readonly text: string }
  | { readonly problem: 'error' | 'memory' | 'size'; readonly message: string };

const STACK_BYTES = 256 * 1_024;
const MESSAGE_CHARACTERS_MAX = 500;
const PAGE_BYTES = 65_536;
/** What the interpreter begins with, and how much of it is its own. */
const FIRST_BYTES = 16 * 1_048_576;
const OWN_BYTES = 5.5 * 1_048_576;

/** As much as is used of it: the types for it come with those for browsers. */
declare const WebAssembly: { Memory: new (pages: { initial: number; maximum: number }) => object };
/** Its types are those of the same module for CommonJS, where the default is one step further down. */
const variant = interpreter as unknown as QuickJSSyncVariant;

const { code, inputs, now, seed, memoryBytes, resultCharactersMax } = workerData as SandboxJob;

/** What would differ from one call to the next is put in order before the program begins. */
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

/** What a program returns is the result: a promise would be an empty one. */
const PROGRAM = `((result) => {
  if (result instanceof Promise) throw new TypeError('The program returned a promise, and nobody waits for it.');
  return JSON.stringify(result ?? null);
})((function (inputs) { 'use strict';\n${code}\n})(JSON.parse(${JSON.stringify(inputs)})))`;

async function run(): Promise<SandboxAnswer> {
  const quickJs = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmMemory: boundedMemory() }));
  const runtime = quickJs.newRuntime();
  runtime.setMemoryLimit(memoryBytes);
  runtime.setMaxStackSize(STACK_BYTES);
  const context = runtime.newContext();
  context.unwrapResult(context.evalCode(PRELUDE)).dispose();
  const outcome = context.evalCode(PROGRAM, 'code.js');
  return outcome.error ? problemOf(context, outcome.error) : answerOf(context, outcome.value);
}

/** The interpreter bounds single pieces of memory; all of them together are bounded by what it has to give. */
function boundedMemory(): object {
  const bytesMax = Math.max(FIRST_BYTES, OWN_BYTES + memoryBytes);
  return new WebAssembly.Memory({ initial: FIRST_BYTES / PAGE_BYTES, maximum: Math.ceil(bytesMax / PAGE_BYTES) });
}

function answerOf(context: QuickJSContext, value: QuickJSHandle): SandboxAnswer {
  if (context.typeof(value) !== 'string') return { problem: 'error', message: 'The result is not JSON.' };
  const text = context.getString(value);
  if (text.length <= resultCharactersMax) return { text };
  return { problem: 'size', message: `The result has more than ${resultCharactersMax} characters.` };
}

function problemOf(context: QuickJSContext, error: QuickJSHandle): SandboxAnswer {
  const message = [describe(context, error, 'name'), describe(context, error, 'message')].filter(Boolean).join(': ');
  // Where there is no room for an error either, null is thrown.
  if (/^InternalError: out of memory/.test(message) || context.sameValue(error, context.null)) {
    return { problem: 'memory', message: `The program needs more than ${memoryBytes} bytes.` };
  }
  return { problem: 'error', message: message.slice(0, MESSAGE_CHARACTERS_MAX) || 'The program threw something.' };
}

/** A member of what was thrown, if it is a text: getters of the program are its own business. */
function describe(context: QuickJSContext, error: QuickJSHandle, member: string): string {
  if (context.sameValue(error, context.null)) return '';
  if (context.typeof(error) !== 'object') return member === 'message' ? String(context.dump(error)) : '';
  const value = context.getProp(error, member);
  return context.typeof(value) === 'string' ? context.getString(value) : '';
}

run()
  .catch((error: Error): SandboxAnswer => {
    const isMemory = /memory|allocation/i.test(error.message);
    return {
      problem: isMemory ? 'memory' : 'error',
      message: isMemory ? 'The program needs too much memory.' : 'The program broke the interpreter.',
    };
  })
  .then((answer) => parentPort!.postMessage(answer));
