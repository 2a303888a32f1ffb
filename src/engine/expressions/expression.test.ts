import { Environment } from '@marcbachmann/cel-js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expressionLanguage } from './expression.ts';
import { ExpressionError } from './expression-error.ts';

const language = expressionLanguage(['variables', 'inputs']);

describe('numbers behave like JSON numbers', () => {
  it.each([
    ['variables.five + 1', 6],
    ['1 + variables.five', 6],
    ['variables.five - 1', 4],
    ['variables.five * 3', 15],
    ['variables.five / 2', 2.5],
    ['11 / variables.five', 2.2],
    ['variables.five % 3', 2],
    ['variables.five % variables.two', 1],
    ['-variables.five', -5],
    ['variables.half + variables.half', 1],
    ['size(variables.list) + variables.five', 8],
    ['variables.list[variables.two]', 30],
    ['variables.five == 5', true],
    ['5 == variables.five', true],
    ['variables.five > 4', true],
    ['variables.five in [1, 5]', true],
    ['variables.list.map(x, x * 2)', [20, 40, 60]],
    ['variables.list.filter(x, x > 15)', [20, 30]],
    ['variables.list == [10, 20, 30]', true],
    ['string(variables.five)', '5'],
  ])('%s is %j', (text, expected) => {
    expect(evaluate(text)).toEqual(expected);
  });
});

describe('results are JSON', () => {
  it.each([
    ['1 + 1', 2],
    ['9007199254740991', 9_007_199_254_740_991],
    ['"a" + "b"', 'ab'],
    ['[1, "a", null, true]', [1, 'a', null, true]],
    ['{"a": {"b": [1]}}', { a: { b: [1] } }],
    ['{1: 2}', { 1: 2 }],
    ['bytes("åa")', 'w6Vh'],
    ['timestamp("2026-01-01T00:00:00Z")', '2026-01-01T00:00:00.000Z'],
    ['duration("90s")', '90s'],
    ['optional.of(variables.five)', 5],
    ['optional.none()', null],
    ['variables.?missing', null],
    ['variables.?five.orValue(1)', 5],
    ['variables.?missing.orValue("otherwise")', 'otherwise'],
    ['variables.object', { a: 1 }],
    ['uint(5) + uint(2)', 7],
    ['7u', 7],
  ])('%s gives %j', (text, expected) => {
    expect(evaluate(text)).toEqual(expected);
  });

  // A value that JSON cannot represent would differ between memory and log.
  it.each([
    '1.0 / 0.0',
    '-1.0 / 0.0',
    '0.0 / 0.0',
    'double("NaN")',
    'variables.huge * variables.huge',
    '[1.0 / 0.0]',
    '{"a": 0.0 / 0.0}',
    'type(1)',
    'b"abc"',
    '[b"abc", uint(1), duration("1s")]',
    'variables.list.map(x, x / 0.0)',
  ])('%s survives serialization', (text) => {
    let result: unknown;
    try {
      result = evaluate(text);
    } catch (error) {
      // Throwing is as good as returning a value.
      expect(error).toBeInstanceOf(ExpressionError);
      return;
    }
    expect(JSON.parse(JSON.stringify(result))).toEqual(result);
  });

  it('also for objects without a prototype, such as variables', () => {
    const bare = Object.assign(Object.create(null), { a: 1, inner: Object.create(null) });
    expect(language.compile('variables')({ variables: bare, inputs: {} })).toEqual({ a: 1, inner: {} });
  });

  it('do not share objects with the scope', () => {
    const scope = { variables: { object: { a: 1 } }, inputs: {} };
    const result = language.compile('variables.object')(scope) as { a: number };
    result.a = 2;
    expect(scope.variables.object.a).toBe(1);
  });
});

describe('names', () => {
  it.each(['nodes.a', 'run', 'process', 'globalThis', 'this', 'constructor', 'x'])(
    'that are not in scope are refused when compiled: %s',
    (text) => {
      expect(() => language.compile(text)).toThrow(ExpressionError);
    },
  );

  it.each([
    'variables.constructor',
    'variables.__proto__',
    'variables["__proto__"]',
    'variables.object.toString',
    'variables.text.length',
  ])('never reach a prototype: %s', (text) => {
    expect(() => evaluate(text)).toThrow(ExpressionError);
  });

  it('of members may be any JSON key', () => {
    const scope = { variables: { constructor: { name: 'x' }, a: 1 }, inputs: {} };
    expect(language.compile('variables.a')(scope)).toBe(1);
    expect(language.compile('variables.?a.orValue(0)')(scope)).toBe(1);
    const inputs = { b: scope.variables, list: [{ a: 2 }, scope.variables] };
    expect(language.compile('inputs.?b[?"a"].orValue(0)')({ ...scope, inputs })).toBe(1);
    expect(language.compile('inputs.list.map(x, x.?a.orValue(0))')({ ...scope, inputs })).toEqual([2, 1]);
    expect(language.compile('inputs.list.exists(x, x == inputs.b)')({ ...scope, inputs })).toBe(true);
    expect(language.compile('inputs.list == [{"a": 2}, variables]')({ ...scope, inputs })).toBe(true);
    expect(language.compile('inputs')({ ...scope, inputs })).toEqual(inputs);
  });

  it('of unknown functions are refused: there is no clock and no randomness', () => {
    for (const text of ['now()', 'rand()', 'random()', 'uuid()', 'fetch("x")', 'getEnv("HOME")']) {
      expect(() => language.compile(text), text).toThrow(ExpressionError);
    }
  });
});

describe('limits', () => {
  /** A value of which each level has the one below twice: small in memory, and endless for whoever walks through it. */
  const doubled = (value: unknown, levels: number): unknown =>
    levels === 0 ? value : doubled([value, value], levels - 1);
  const numbers = (length: number): number[] => Array.from({ length }, (_, index) => index);
  const scope = {
    variables: {},
    inputs: {
      list: numbers(2_000),
      same: numbers(2_000),
      few: numbers(60),
      stock: Object.fromEntries(numbers(1_500).map((number) => [`k${number}`, 1])),
      text: 'a'.repeat(500_000),
      texts: Array(2_000).fill('abc'),
      separator: '-'.repeat(5_000),
    },
  };

  it('apply to the length of the text', () => {
    expect(() => language.compile(`"${'x'.repeat(5_000)}" == ""`)).toThrow(/longer than/);
  });

  it('apply to nesting, elements and arguments', () => {
    expect(() => language.compile(`${'('.repeat(60)}1${')'.repeat(60)} + ${'['.repeat(60)}${']'.repeat(60)}`)).toThrow(
      ExpressionError,
    );
    expect(() => language.compile(`[${'1,'.repeat(600)}1]`)).toThrow(ExpressionError);
    expect(() => language.compile(Array(1_100).fill('1').join('+'))).toThrow(ExpressionError);
  });

  it('allow ordinary expressions', () => {
    expect(language.compile('inputs.list.map(x, x + 1).filter(x, x % 2 == 0).size()')(scope)).toBe(1_000);
    expect(language.compile('inputs.texts.join(",").size()')(scope)).toBe(7_999);
    const text = 'a'.repeat(100_000);
    expect(language.compile('inputs.text.matches("^a+$")')({ ...scope, inputs: { text } })).toBe(true);
  });

  it('are reset for each evaluation', () => {
    const heavy = language.compile('inputs.list.all(x, true)');
    const wide = { variables: {}, inputs: { list: numbers(45_000) } };
    for (let count = 0; count < 5; count++) expect(heavy(wide)).toBe(true);
  });

  it('count an iteration as one step, also inside another macro', () => {
    const nested = language.compile('inputs.list.all(x, inputs.one.all(y, inputs.one.all(z, true)))');
    expect(nested({ variables: {}, inputs: { list: numbers(15_000), one: [1] } })).toBe(true);
  });

  it.each([
    ['nested macros', 'inputs.list.all(x, inputs.list.all(y, inputs.list.all(z, true)))'],
    ['nested maps', 'inputs.list.map(x, inputs.list.map(y, y))'],
    ['nested filters', 'inputs.list.filter(x, inputs.list.filter(y, true).size() > 0)'],
    ['nested exists_one', 'inputs.list.exists_one(x, inputs.list.exists_one(y, false))'],
    ['macros inside a binding', 'cel.bind(v, inputs.list.map(x, inputs.list.map(y, y)), v.size())'],
    ['macros behind an index', 'inputs.list.map(x, inputs.list.map(y, y))[0]'],
    ['macros inside a conditional', 'true ? inputs.list.map(x, inputs.list.map(y, y)) : []'],
    ['macros inside a literal', '{"a": [inputs.list.map(x, inputs.list.map(y, y))]}'],
    ['a text that doubles', doubling('inputs.text', (name) => `${name} + ${name}`, 8)],
    ['a list that doubles', doubling('inputs.list', (name) => `${name} + ${name}`, 8)],
    ['a list joined to a text that is too long', 'inputs.texts.join(inputs.separator)'],
    ['lists compared again and again', 'inputs.list.all(x, inputs.list == inputs.same)'],
    ['lists searched again and again', 'inputs.list.all(x, !(5000 in inputs.list))'],
    // Half a million characters, sixty times; without step counting, two thousand times would be possible too.
    ['long texts searched again and again', 'inputs.few.all(x, !inputs.text.contains("b"))'],
    ['long texts split again and again', 'inputs.few.all(x, inputs.text.split("").size() > 0)'],
    ['long texts measured again and again', 'inputs.few.all(x, inputs.text.size() > 0)'],
    ['members counted again and again', 'inputs.few.all(x, size(inputs.stock) > 0 && inputs.stock.size() > 0)'],
    [
      'members listed again and again',
      'inputs.few.all(x, inputs.stock.exists(name, true) && inputs.stock.exists(name, true))',
    ],
    ['a long text searched for another', 'inputs.text.contains(inputs.text.substring(0, 2000) + "b")'],
    ['a long text searched from its end', 'inputs.text.lastIndexOf("b" + inputs.text.substring(0, 2000)) > 0'],
    ['bytes that double', doubling('bytes(inputs.text)', (name) => `${name} + ${name}`, 8)],
    ['bytes that are written out often', '[bytes(inputs.text)].map(b, inputs.few.map(x, b))'],
    ['durations that are written out often', '[duration("1.1s")].map(d, inputs.list.map(x, [d, d, d]))'],
    ['long texts rewritten again and again', 'inputs.few.all(x, inputs.text.upperAscii() != "")'],
  ])('stop %s', (_what, text) => {
    expect(() => language.compile(text)(scope)).toThrow(/steps/);
  });

  it('are the same for every evaluation, whatever the one before has left', () => {
    const search = language.compile('inputs.text.contains(inputs.part)');
    const text = 'a'.repeat(10_000);
    for (let times = 0; times < 3; times++) {
      expect(() => search({ variables: {}, inputs: { text, part: 1 } })).toThrow('no matching overload');
      expect(search({ variables: {}, inputs: { text, part: 'a' } })).toBe(true);
    }
    const often = language.compile('inputs.parts.exists(x, inputs.text.contains(x))');
    expect(often({ variables: {}, inputs: { text, parts: [1, 2, 'b', 3, 'a'] } })).toBe(true);
  });

  it('do not depend on what an expression does not read', () => {
    const huge = doubled([{ constructor: 1 }], 40);
    expect(language.compile('inputs.?a.orValue(0)')({ variables: { huge }, inputs: { a: 1, huge } })).toBe(1);
    expect(() =>
      language.compile('inputs.?huge.hasValue()')({ variables: {}, inputs: { huge: doubled(0, 40) } }),
    ).toThrow(/steps/);
  });

  it.each(['duration', 'timestamp', 'int', 'uint', 'double'])('refuse to read a long text with %s', (name) => {
    const read = language.compile(`${name}(inputs.text)`);
    expect(() => read({ variables: {}, inputs: { text: '1'.repeat(200_000) } })).toThrow(/100 characters/);
  });

  // Each level contains the previous one twice. Written out, eighteen levels have a quarter of a million members, and
  // thirty exceed any memory.
  it('stop a value that is small in memory and huge when serialized', () => {
    expect(() => language.compile(doubling('[1, 1]', (name) => `[${name}, ${name}]`, 18))(scope)).toThrow(/steps/);
  });

  it('apply to patterns: none of them backtracks', () => {
    const text = `${'a'.repeat(5_000)}!`;
    const run = language.compile('variables.text.matches(variables.pattern)');
    for (const pattern of ['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '^(.*a){20}$', '(a*)*b']) {
      expect(run({ variables: { text, pattern }, inputs: {} }), pattern).toBe(false);
    }
  });

  it('apply to literal patterns in the expression', () => {
    const text = 'a'.repeat(50_000);
    expect(language.compile('inputs.text.matches("^(a+)+!$")')({ ...scope, inputs: { text } })).toBe(false);
  });

  it.each([
    ['a long text with a large pattern', 'inputs.text.matches("((a|b|ab)*c?){40}$")'],
    ['patterns that are compiled again and again', 'inputs.few.all(x, !"a".matches("(x{1,99}){1,4}" + string(x)))'],
    ['patterns that are not valid, though the loop goes on', 'inputs.few.exists(x, "a".matches("(x{1,99}){1,99}"))'],
    ['time zones', 'inputs.list.all(x, timestamp("2026-01-01T00:00:00Z").getHours("Europe/Berlin") >= 0)'],
    [
      'maps that are made again and again',
      `inputs.list.all(x, {${numbers(120).map((key) => `'k${key}': 1`)}}.size() > 0)`,
    ],
    ['durations', 'inputs.list.all(x, inputs.few.all(y, duration("1h2m3s") > duration("1s")))'],
  ])('charge what it costs to use %s', (_what, expression) => {
    expect(() => language.compile(expression)(scope)).toThrow(/more than 100000 steps/);
  });

  it('do not charge for the members of a map that is only looked into', () => {
    const map = Object.fromEntries(numbers(30_000).map((key) => [`k${key}`, key]));
    expect(language.compile('inputs.few.all(x, inputs.map["k1"] == 1)')({ inputs: { few: [1], map } })).toBe(true);
  });

  it.each(['(?=a)', '(a)\\\\1', '('])('refuse the pattern %s, which RE2 does not support', (pattern) => {
    expect(() => language.compile(`"a".matches("${pattern}")`)({ variables: {}, inputs: {} })).toThrow(ExpressionError);
  });
});

describe('an error', () => {
  const SECRET = 'XYZZY-PLUGH-42';

  it.each([
    'int(variables.secret)',
    'uint(variables.secret)',
    'double(variables.secret)',
    'bool(variables.secret)',
    'timestamp(variables.secret)',
    'duration(variables.secret)',
    'variables[variables.secret]',
    'variables.object[variables.secret]',
    'variables.list[variables.secret]',
    'variables.secret + 1',
    'variables.secret < 1',
    'variables.secret.missing',
    'variables.secret.substring(1000)',
    'variables.secret.matches("(" + variables.secret)',
    '"x".matches("(" + variables.secret)',
    'bytes(variables.secret).json()',
    'variables.secret ? 1 : 2',
    'timestamp("2026-01-01T00:00:00Z").getHours(variables.secret)',
  ])('of %s does not quote the value', (text) => {
    const run = language.compile(text);
    const scope = { variables: { secret: SECRET, object: {}, list: [1] }, inputs: {} };
    const message = messageOf(() => run(scope));
    expect(message).not.toMatch(/XYZZY|PLUGH/);
  });

  it('is a single line and an ExpressionError', () => {
    for (const text of ['1 +', 'unknown', '"a" + 1', 'variables.missing', '1 / 0']) {
      expect(
        messageOf(() => evaluate(text)),
        text,
      ).not.toContain('\n');
    }
  });

  it('is always an ExpressionError, whatever the text is', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 60 }), soup()), (text) => {
        try {
          evaluate(text);
        } catch (error) {
          expect(error).toBeInstanceOf(ExpressionError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

/**
 * The limits depend on two undocumented details of the library: the condition of a comprehension is evaluated before
 * each iteration, and the `evaluate` of a node in the checked tree is what runs. If a new version of the library
 * changes either, these tests fail first.
 */
describe('internals of the CEL library that the limits depend on', () => {
  const environment = new Environment({ unlistedVariablesAreDyn: true });
  interface Node {
    op: string;
    args: unknown;
    meta: { evaluate?: unknown; alternate?: Node };
    setMeta(key: string, value: unknown): Node;
  }
  const checked = (text: string): { ast: Node; run: (scope?: object) => unknown } => {
    const parsed = environment.parse(text);
    expect(parsed.check().valid).toBe(true);
    return { ast: parsed.ast as unknown as Node, run: (scope = {}) => parsed(scope as never) };
  };

  it.each([
    '[1, 2].all(x, true)',
    '[1, 2].exists(x, false)',
    '[1, 2].exists_one(x, false)',
    '[1, 2].map(x, x)',
    '[1, 2].filter(x, true)',
    '[1, 2].map(x, true, x)',
  ])('a macro becomes a comprehension whose condition is evaluated before each iteration: %s', (text) => {
    const { ast, run } = checked(text);
    const loop = ast.op === 'comprehension' ? ast : ast.meta.alternate!;
    expect(loop.op).toBe('comprehension');
    const args = loop.args as { condition?: (accumulator: unknown) => boolean };
    const original = args.condition;
    let asked = 0;
    args.condition = (accumulator) => {
      asked++;
      return original ? original(accumulator) : true;
    };
    run();
    expect(asked).toBeGreaterThanOrEqual(2);
  });

  it('replacing the evaluate function of a node takes effect', () => {
    const { ast, run } = checked('"a" + "b"');
    expect(ast.op).toBe('+');
    expect(ast.meta.evaluate).toBeTypeOf('function');
    ast.setMeta('evaluate', () => 'replaced');
    expect(run()).toBe('replaced');
  });

  it('a call of matches or join is an rcall with name, receiver and parameters', () => {
    for (const [text, name] of [
      ['"a".matches("b")', 'matches'],
      ['["a"].join(",")', 'join'],
    ] as const) {
      const { ast } = checked(text);
      expect(ast.op).toBe('rcall');
      const [called, receiver, parameters] = ast.args as [string, Node, Node[]];
      expect(called).toBe(name);
      expect(receiver.setMeta).toBeTypeOf('function');
      expect(parameters).toHaveLength(1);
    }
  });

  it('an evaluator runs a node with a context', () => {
    const { ast, run } = checked('"a".matches(pattern)');
    const [, receiver] = ast.args as [string, Node, Node[]];
    ast.setMeta(
      'evaluate',
      (evaluator: { run(node: Node, context: unknown): unknown }, _self: unknown, context: unknown) =>
        evaluator.run(receiver, context),
    );
    expect(run({ pattern: 'b' })).toBe('a');
  });

  it('regular expressions are only reachable through the method', () => {
    expect(environment.check('matches("a", "b")').valid).toBe(false);
  });

  it('every function whose cost grows with its input is listed here', () => {
    const known = new Set(
      `at base64 bytes bool contains double duration dyn endsWith getDate getDayOfMonth getDayOfWeek getDayOfYear
       getFullYear getHours getMilliseconds getMinutes getMonth getSeconds hasValue hex indexOf int join json
       lastIndexOf lowerAscii matches none of or orValue ofNonZeroValue size split startsWith string substring
       timestamp trim type uint unwrap upperAscii value optMap optFlatMap unwrapOpt
       all exists exists_one map filter has bind`.split(/\s+/),
    );
    const names = environment.getDefinitions().functions.map(({ name }) => name);
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  });
});

const SCOPE = {
  variables: {
    five: 5,
    two: 2,
    half: 0.5,
    huge: 1e308,
    text: 'text',
    list: [10, 20, 30],
    object: { a: 1 },
  },
  inputs: {},
};

function evaluate(text: string): unknown {
  return language.compile(text)(SCOPE);
}

function messageOf(work: () => unknown): string {
  try {
    work();
    return '';
  } catch (error) {
    expect(error).toBeInstanceOf(ExpressionError);
    return (error as Error).message;
  }
}

/** `cel.bind(x0, seed, cel.bind(x1, twice(x0), … x1))`. */
function doubling(seed: string, twice: (name: string) => string, levels: number): string {
  const inner = Array.from({ length: levels }, (_, level) => level).reduceRight(
    (rest, level) => `cel.bind(x${level + 1}, ${twice(`x${level}`)}, ${rest})`,
    `x${levels}`,
  );
  return `cel.bind(x0, ${seed}, ${inner})`;
}

/** Texts that resemble expressions and are mostly invalid. */
function soup(): fc.Arbitrary<string> {
  const parts = [
    'variables',
    '.',
    'five',
    'list',
    '[',
    ']',
    '(',
    ')',
    '1',
    '"a"',
    '+',
    '==',
    '&&',
    '?',
    ':',
    '.map(x, ',
    'x',
    'size',
    '!',
    ',',
    '{',
    '}',
    'null',
    '.matches(',
  ];
  return fc.array(fc.constantFrom(...parts), { maxLength: 20 }).map((words) => words.join(''));
}

describe('a key that is missing', () => {
  const reason = (text: string, k: string): string => {
    try {
      return String(language.compile(text)({ variables: { k }, inputs: {} }));
    } catch (error) {
      expect(error).toBeInstanceOf(ExpressionError);
      return (error as Error).message;
    }
  };

  it('is named if the author wrote it, and never if it is a value', () => {
    expect(reason('inputs.amount == 1', '')).toBe('no such key: amount');
    expect(reason('{"a": 1}[variables.k] == 1', 'k')).toBe('no such key: k');
    expect(reason('{"a": 1}[variables.k] == 1', 'SECRETVALUE')).toBe('no such key');
  });

  it('may be of any length', () => {
    expect(reason('{"a": 1}[variables.k] == 1', 'Z'.repeat(900_000))).not.toContain('Z');
  });
});
