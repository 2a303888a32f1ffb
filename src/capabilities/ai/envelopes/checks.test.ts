import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ENVELOPE_KINDS, UNIVERSAL_KINDS } from '../../../protocol/ai/envelopes.ts';
import { localSchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import { checkPayload, findEnvelopes, hasDrifted, isInContract, parseShape } from './checks.ts';

const id = fc.string({ minLength: 1, maxLength: 128 });
const shape = fc.record(
  {
    type: fc.constantFrom<string>(...UNIVERSAL_KINDS, 'vendor.acme.note'),
    envelopeId: id,
    correlationId: id,
    payload: fc.jsonValue(),
    meta: fc.record(
      {
        source: fc.constantFrom('ai-generation', 'user', 'system'),
        ts: fc
          .date({ noInvalidDate: true, min: new Date('2000-01-01'), max: new Date('2100-01-01') })
          .map((date) => date.toISOString()),
        contentTrust: fc.constantFrom('trusted', 'untrusted'),
        label: fc.string({ maxLength: 256 }),
      },
      { requiredKeys: ['source', 'ts'] },
    ),
    schemaVersion: fc.nat(),
    nodeId: id,
  },
  { requiredKeys: ['type', 'envelopeId', 'correlationId', 'payload', 'meta'] },
);
const GOOD = {
  type: 'error',
  schemaVersion: 1,
  envelopeId: 'e',
  correlationId: 'c',
  payload: { code: 'x', message: 'y' },
  meta: { source: 'ai-generation' as const, ts: '2026-05-18T10:00:00Z' },
};

const schemas = localSchemaValidator();

describe('finding envelopes', () => {
  it('finds every well-formed one, as it is or in a fence, alone or in a list', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(shape, { minLength: 1, maxLength: 4 }), fc.boolean(), async (envelopes, isFenced) => {
        const json = JSON.stringify(envelopes.length === 1 ? envelopes[0] : envelopes);
        const text = isFenced ? `So:\n\`\`\`json\n${json}\n\`\`\`\n` : json;
        fc.pre(!isFenced || !json.includes('```'));
        const found = await findEnvelopes(text);
        expect(found.map(({ value }) => value)).toEqual(JSON.parse(JSON.stringify(envelopes)));
        expect(found.every(({ byteOffset }) => (byteOffset !== undefined) === isFenced)).toBe(true);
      }),
    );
  });

  it('never throws, and finds nothing in prose', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.jsonValue(), async (text, value) => {
        expect(Array.isArray(await findEnvelopes(text))).toBe(true);
        expect(Array.isArray(await findEnvelopes(JSON.stringify(value)))).toBe(true);
        expect(await findEnvelopes(`In words: ${text.replaceAll('`', '')}.`)).toEqual([]);
      }),
    );
  });

  it.each([
    [{ type: 'error', message: 'x' }],
    [{ type: 'order', payload: {} }],
    [{ type: 'order', payload: {}, correlationId: 'c' }],
    [{ envelopeId: 'e' }],
    [{ type: 'order', meta: {}, payload: {} }],
    [[{ ...GOOD }, 1]],
    [{ __proto__: null, payload: 1 }],
  ])('leaves other JSON alone: %j', async (value) => {
    expect(await findEnvelopes(JSON.stringify(value))).toEqual([]);
  });

  it('takes what fits the answer for an answer, but a universal kind never', async () => {
    const other = { ...GOOD, type: 'vendor.acme.note' };
    expect(await findEnvelopes(JSON.stringify(other), async () => true)).toEqual([]);
    expect(await findEnvelopes(JSON.stringify(GOOD), async () => true)).toHaveLength(1);
  });
});

describe('the shape of an envelope', () => {
  it('is right for every well-formed one, and wrong with any member more or less', () => {
    fc.assert(
      fc.property(
        shape,
        fc.constantFrom('type', 'envelopeId', 'correlationId', 'payload', 'meta'),
        (envelope, gone) => {
          const sent = JSON.parse(JSON.stringify(envelope));
          expect(parseShape(sent)).toEqual(sent);
          expect(parseShape({ ...sent, more: 1 })).toMatchObject({ refused: 'invalid_envelope_shape' });
          expect(parseShape({ ...sent, meta: { ...sent.meta, more: 1 } })).toMatchObject({
            refused: expect.anything(),
          });
          delete sent[gone];
          expect(parseShape(sent)).toMatchObject({ refused: 'invalid_envelope_shape' });
        },
      ),
    );
  });

  it.each([
    [{ type: 'x'.repeat(257) }],
    [{ correlationId: 'x'.repeat(129) }],
    [{ envelopeId: '' }],
    [{ schemaVersion: -1 }],
    [{ meta: { source: 'nobody', ts: '2026-05-18T10:00:00Z' } }],
    [{ meta: { source: 'user', ts: 'yesterday' } }],
    [{ partial: { isPartial: true, index: 0, total: -1 } }],
  ])('is wrong with %j', (more) => {
    expect(parseShape({ ...GOOD, ...more })).toMatchObject({ refused: 'invalid_envelope_shape' });
  });
});

describe('the payload of an envelope', () => {
  const payload = (type: string, value: unknown) => checkPayload({ ...GOOD, type, payload: value }, undefined, schemas);

  it('is checked by the schema of its kind', async () => {
    expect(await payload('error', { code: 'x', message: 'y', reasoning: 'z' })).toBeUndefined();
    expect(await payload('schema.response', { envelopeType: 'error', ack: true })).toBeUndefined();
    expect(await payload('schema.request', { envelopeType: 'error' })).toBeUndefined();
    expect(await payload('schema.response', { envelopeType: 'error', ack: false })).toMatchObject({
      refused: 'envelope_invalid',
    });
    expect(await payload('schema.request', { envelopeType: 'error', reason: 'x'.repeat(1_025) })).toBeDefined();
    expect(
      await payload('clarification.request', { questions: [{ id: 'q', question: 'Why?', more: 1 }] }),
    ).toBeDefined();
  });

  it('is any JSON that fits for nobody else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...UNIVERSAL_KINDS), fc.jsonValue(), async (type, value) => {
        const refusal = await payload(type, value);
        expect(refusal === undefined || refusal.refused === 'envelope_invalid').toBe(true);
      }),
    );
  });

  it('is refused in a version that is too new, and has drifted in one that is older', async () => {
    const kind = { version: 2, schema: { type: 'object' } };
    const sent = { ...GOOD, type: 'vendor.acme.note', payload: {} };
    expect(await checkPayload({ ...sent, schemaVersion: 3 }, kind, schemas)).toMatchObject({
      refused: 'unknown_schema_version',
    });
    expect(await checkPayload({ ...sent, schemaVersion: 2 }, kind, schemas)).toBeUndefined();
    expect([1, 2].map((schemaVersion) => hasDrifted({ ...sent, schemaVersion }, kind))).toEqual([true, false]);
    expect(await checkPayload({ ...sent, payload: [] }, kind, schemas)).toMatchObject({ refused: 'envelope_invalid' });
  });
});

describe('a contract', () => {
  it('never keeps out a universal kind, nor anything where there is none', () => {
    for (const kind of Object.keys(ENVELOPE_KINDS)) expect(isInContract(kind, { accepts: [] })).toBe(true);
    expect(isInContract('vendor.acme.note', undefined)).toBe(true);
    expect(isInContract('vendor.acme.note', { accepts: [] })).toBe(false);
    expect(isInContract('vendor.acme.note', { accepts: ['vendor.acme.note'] })).toBe(true);
  });
});
