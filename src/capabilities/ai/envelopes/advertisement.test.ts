import { expect, it } from 'vitest';
import { typeOf } from '../../../../test/support/node-context.ts';
import { advertisement } from './advertisement.ts';

const KINDS = new Map([['vendor.acme.note', { version: 3, schema: {} }]]);
const UNIVERSAL = ['clarification.request', 'schema.request', 'schema.response', 'error'];

it('says that a host supports envelopes only where a node reads them', () => {
  expect(advertisement([typeOf('core.noop')], KINDS)).toMatchObject({ supportedEnvelopes: [], schemaVersions: {} });
  expect(advertisement([typeOf('core.noop')], KINDS)).not.toHaveProperty('envelopeContracts');
  const types = [typeOf('core.noop'), typeOf('core.ai.callPrompt')];
  expect(advertisement(types, new Map())).toMatchObject({ supportedEnvelopes: UNIVERSAL });
  expect(advertisement(types, KINDS)).toMatchObject({
    supportedEnvelopes: [...UNIVERSAL, 'vendor.acme.note'],
    schemaVersions: { error: 1, 'vendor.acme.note': 3 },
  });
});
