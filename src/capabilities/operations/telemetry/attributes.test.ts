import { expect, it } from 'vitest';
import { allowedAttributes } from './attributes.ts';

it('drops attributes that are not listed, values that are not flat, and what looks like a secret', () => {
  const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;
  const shown = allowedAttributes({
    'openwop.cost.tokens.input': 3,
    'openwop.cost.leaked_token': token,
    'openwop.cost.usd': { nested: token },
    'openwop.node_id': `send ${token}`,
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.input.messages': 'Hello?',
    'openwop.workflow_id': 'w'.repeat(1_000),
  });
  expect(Object.keys(shown)).toEqual([
    'openwop.cost.tokens.input',
    'openwop.node_id',
    'gen_ai.response.finish_reasons',
    'openwop.workflow_id',
  ]);
  expect(JSON.stringify(shown)).not.toContain(token);
  expect(shown['openwop.workflow_id']).toHaveLength(256);
});
