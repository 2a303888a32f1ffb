/** How long the worst input that is accepted keeps the main thread: schemas, bodies, expressions and patterns. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expressionLanguage } from '../src/engine/expressions/expression.ts';
import { compilePattern, matchBounded } from '../src/engine/expressions/pattern.ts';
import { explain } from '../src/protocol/format/explain.ts';
import { WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { threadedSchemaValidator } from '../src/runtime/validation/schema-threads.ts';
import { realClock } from '../src/system/real.ts';

const BLOCKED_MAX_MS = 50;
const TRIES = 3;

const numbers = (length: number): number[] => Array.from({ length }, (_, index) => index);
const text = 'a'.repeat(900_000);
const texts = numbers(20_000).map((index) => `${'ab'.repeat(20)}${index}`);
const map = Object.fromEntries(numbers(50_000).map((index) => [`k${index}`, index]));

/** Expressions that cost much for their length. Most of them are refused; the time until then counts as well. */
const EXPRESSIONS: Readonly<Record<string, string>> = {
  'nested loops': 'inputs.list.all(x, inputs.list.all(y, inputs.list.all(z, x + y + z >= 0)))',
  'nested lists': 'inputs.list.map(x, inputs.list.map(y, x * y))',
  'long sums': `inputs.many.map(x, ${Array(300).fill('x').join('+')}).size()`,
  'map literals': `inputs.many.all(x, {${numbers(200).map((key) => `'k${key}': 1`)}}.size() > 0)`,
  'doubled texts': `[inputs.text]${'.map(a, a + a)'.repeat(7)}.size()`,
  'counted texts': 'inputs.list.all(x, inputs.text.size() > 0)',
  'joined texts': 'inputs.list.all(x, inputs.texts.join(",").size() > 0)',
  'large maps': 'inputs.many.all(x, "k1" in inputs.map)',
  'time zones': 'inputs.many.all(x, timestamp("2026-01-01T00:00:00Z").getHours("Europe/Berlin") >= 0)',
  durations: 'inputs.many.all(x, duration("1h2m3s") > duration("1s"))',
  'a pattern in a loop': 'inputs.texts.all(x, x.matches("^(ab)+[0-9]+$"))',
  'patterns made in a loop': 'inputs.texts.all(x, !"b".matches("(a{1,99}){1,4}" + x))',
  'invalid patterns in a loop': 'inputs.texts.exists(x, x.matches("(a{1,99}){1,99}"))',
};

/** Prints for each kind of input how long it keeps the main thread, at its worst. */
export async function benchValidation(): Promise<void> {
  console.log(`\nhow long the main thread is kept, in ms (less than ${BLOCKED_MAX_MS} wanted)`);
  const language = expressionLanguage(['inputs']);
  const inputs = { list: numbers(1_000), many: numbers(50_000), text, texts, map };
  for (const [name, source] of Object.entries(EXPRESSIONS)) {
    const evaluate = language.compile(source);
    show(`expression, ${name}`, () => evaluate({ inputs }));
  }
  for (const source of ['[ab]*a[ab]{20}$', '(a|a|a|a)*'.repeat(60)]) {
    const pattern = compilePattern(source);
    const length = Math.floor(1_000_000 / pattern.size);
    show(`pattern of ${pattern.size} instructions, ${length} characters`, () =>
      matchBounded(pattern, 'ab'.repeat(length / 2)),
    );
  }
  show('pattern that is compiled', () => compilePattern('[a-z]{1,450}'));
  show('report on a body of 1 MB', () =>
    explain(WorkflowDefinition, { nodes: numbers(60_000).map(() => ({ inputs: {} })) }),
  );
  await benchSchemas();
}

function show(name: string, work: () => unknown): void {
  const times = numbers(TRIES).map(() => {
    const start = performance.now();
    attempt(work);
    return performance.now() - start;
  });
  console.log(
    `  ${Math.min(...times)
      .toFixed(1)
      .padStart(7)}  ${name}`,
  );
}

/** A refusal is an outcome as well. */
function attempt(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
}

/** Schemas are evaluated in threads: what counts is the delay of the event loop meanwhile. */
async function benchSchemas(): Promise<void> {
  const schemas = threadedSchemaValidator(realClock);
  const wide = { properties: Object.fromEntries(numbers(1_300).map((index) => [`p${index}`, { type: 'string' }])) };
  const ordinary = numbers(1_200).map((index) => ({ properties: { [`p${index}`]: { type: 'string' } } }));
  await schemas.problemWith(true);
  for (const [name, given] of Object.entries({ 'one wide schema': [wide], '1,200 ordinary schemas': ordinary })) {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const start = performance.now();
    await Promise.all(given.map((schema) => schemas.problemWith(schema)));
    delay.disable();
    const took = (performance.now() - start).toFixed(0);
    console.log(`  ${(delay.max / 1e6).toFixed(1).padStart(7)}  ${name}, answered after ${took} ms`);
  }
  await schemas.close();
}
