import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CRITERIA_MAX } from '../../protocol/learning/verifiers.ts';
import { extractFinding, type JudgedRun, judgeChecklist, judgeCriteria, judgeSchema, parseFinding } from './verdict.ts';
import { specProblems } from './verifier-spec.ts';

const judged: JudgedRun = {
  run: { runId: 'run-1', status: 'completed' },
  outputs: { write: { text: 'hello', words: 1 } },
  variables: { count: 3 },
  annotations: [{ signal: { kind: 'rating', rating: 5 } }],
};

/** Nested loops, ten iterations each. */
function nested(depth: number): string {
  return depth === 0 ? 'true' : `[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(i${depth}, ${nested(depth - 1)})`;
}

describe('criteria', () => {
  it('can refer to the run, its outputs, variables and annotations', () => {
    const criteria = [
      { key: 'ended', expression: 'run.status == "completed"' },
      { key: 'output', expression: 'outputs.write.text == "hello"' },
      { key: 'variable', expression: 'variables.count == 3' },
      { key: 'liked', expression: 'annotations.exists(a, a.signal.rating >= 4)' },
    ];
    const { satisfied, evidence } = judgeCriteria(criteria, judged);
    expect([satisfied, evidence.map(({ met }) => met)]).toEqual([true, [true, true, true, true]]);
  });

  it('must be true or false as far as their text tells', () => {
    const problemsOf = (expression: string) => specProblems({ kind: 'criteria', criteria: [{ key: 'a', expression }] });
    for (const expression of ['1 + 1', '"yes"', 'size(outputs)', '[true]', 'outputs.a ? 1 : 2', 'null']) {
      expect(problemsOf(expression), expression).toMatchObject([{ path: '.criteria.0.expression' }]);
    }
    for (const expression of ['outputs.a', 'outputs.a && true', 'outputs.list.exists(x, x)']) {
      expect(problemsOf(expression), expression).toEqual([]);
    }
  });

  it.each([
    ['what fails', 'outputs.missing.text == "hello"'],
    ['what is not an expression', 'outputs.('],
    ['what names something else', 'secrets.key == "x"'],
    ['what is neither true nor false', 'outputs.write.words'],
    ['what takes too long', nested(6)],
  ])('count %s as not met, with the reason', (_what, expression) => {
    const { satisfied, evidence } = judgeCriteria([{ key: 'a', expression }], judged);
    expect(satisfied).toBe(false);
    expect(evidence).toEqual([{ key: 'a', met: false, detail: expect.stringMatching(/.+/) }]);
  });

  it('are not satisfied if there are none', () => {
    expect(judgeCriteria([], judged).satisfied).toBe(false);
    expect(judgeChecklist([], judged).satisfied).toBe(false);
  });

  const items = fc.array(fc.record({ isTrue: fc.boolean(), required: fc.boolean() }), { minLength: 1, maxLength: 20 });

  it('are satisfied if all hold, and a checklist if all required items do', () => {
    fc.assert(
      fc.property(items, (drawn) => {
        const list = drawn.map(({ isTrue, required }, index) => ({
          key: `k${index}`,
          expression: `${isTrue}`,
          required,
        }));
        const criteria = list.map(({ key, expression }) => ({ key, expression }));
        expect(judgeCriteria(criteria, judged).satisfied).toBe(drawn.every(({ isTrue }) => isTrue));
        const required = drawn.filter((item) => item.required);
        const checklist = judgeChecklist(list, judged);
        expect(checklist.satisfied).toBe(required.length > 0 && required.every(({ isTrue }) => isTrue));
        expect(checklist.evidence.map(({ met }) => met)).toEqual(drawn.map(({ isTrue }) => isTrue));
      }),
    );
  });
});

describe('a schema', () => {
  it('is satisfied if nothing is wrong with the outputs', () => {
    expect(judgeSchema(['/write must have title'])).toEqual({
      satisfied: false,
      evidence: [{ key: 'schema', met: false, detail: '/write must have title' }],
    });
    expect(judgeSchema([])).toEqual({ satisfied: true, evidence: [{ key: 'schema', met: true }] });
  });
});

describe('an external verdict', () => {
  it('is reduced to known members and limited in length', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const finding = parseFinding(value);
        if (!finding) return;
        expect(typeof finding.satisfied).toBe('boolean');
        expect(finding.evidence.length).toBeLessThanOrEqual(CRITERIA_MAX);
      }),
    );
    const long = { key: 'k'.repeat(1_000), met: true, detail: 'd'.repeat(5_000), more: 1 };
    const { evidence } = parseFinding({ satisfied: true, evidence: Array(200).fill(long) })!;
    expect(evidence).toHaveLength(CRITERIA_MAX);
    expect(evidence[0]).toEqual({ key: 'k'.repeat(128), met: true, detail: 'd'.repeat(500) });
  });

  it.each([
    ['yes'],
    [null],
    [[{ satisfied: true }]],
    [{ satisfied: 'true' }],
    [{ satisfied: 1 }],
    [{ satisfied: true, confidence: 2 }],
    [{ satisfied: true, confidence: 'high' }],
    [{ satisfied: true, evidence: 'all good' }],
    [{ satisfied: true, evidence: [{ key: 'a', met: 'yes' }] }],
    [{ satisfied: true, evidence: [{ key: '', met: true }] }],
  ])('is rejected: %j', (value) => {
    expect(parseFinding(value)).toBeUndefined();
  });

  it('is found in the final outputs, or on one of their ports', () => {
    const finding = { satisfied: true, confidence: 0.8, evidence: [] };
    expect(extractFinding({ end: { satisfied: true, confidence: 0.8 } })).toEqual(finding);
    expect(extractFinding({ end: { data: { satisfied: true, confidence: 0.8 }, model: 'm' } })).toEqual(finding);
    expect(extractFinding({ end: { text: 'fine' } })).toBeUndefined();
    expect(extractFinding({ a: { satisfied: true }, b: { satisfied: false } })).toBeUndefined();
  });
});

describe('a verifier', () => {
  it.each<[string, string[], object]>([
    ['lacks what its kind needs', ['.criteria'], { kind: 'criteria' }],
    ['has what another kind has', ['.rubric'], { kind: 'schema', schema: {}, rubric: 'nice' }],
    ['is no expression', ['.criteria.0.expression'], { kind: 'criteria', criteria: [{ key: 'a', expression: '1 +' }] }],
    [
      'has a key twice',
      ['.items.1.key'],
      {
        kind: 'checklist',
        items: [
          { key: 'a', expression: 'true' },
          { key: 'a', expression: 'true' },
        ],
      },
    ],
    ['requires nothing', ['.items'], { kind: 'checklist', items: [{ key: 'a', expression: 'true', required: false }] }],
  ])('is refused if it %s', (_what, paths, spec) => {
    expect(specProblems(spec as never).map(({ path }) => path)).toEqual(paths);
  });

  it.each([
    { kind: 'criteria', criteria: [{ key: 'a', expression: 'run.status == "completed"' }] },
    { kind: 'schema', schema: { type: 'object' } },
    { kind: 'workflow', workflowId: 'w' },
    { kind: 'model', rubric: 'r', model: 'local/small' },
  ])('may be $kind', (spec) => {
    expect(specProblems(spec as never)).toEqual([]);
  });
});
