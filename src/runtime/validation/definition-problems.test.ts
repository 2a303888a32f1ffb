import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import { catalogOf } from '../catalog.ts';
import { definitionProblems } from './definition-problems.ts';
import { localSchemaValidator } from './schema-validator.ts';

const checks = {
  catalog: catalogOf([{ typeId: 'core.noop', description: 'For tests.', role: 'pure', run: () => ({ done: {} }) }]),
  schemas: localSchemaValidator(),
};
const problemsOf = (more: object) => definitionProblems(workflow([node('a')], [], more), checks);
const channels = (count: number, schema: object) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`c${index}`, { reducer: 'append', schema }]));

describe('the JSON Schemas of a definition', () => {
  it('must be valid', async () => {
    expect(await problemsOf({ configurableSchema: { type: 7 } })).toMatchObject([{ path: 'configurableSchema' }]);
    expect(await problemsOf({ channels: channels(2, { type: 'strange' }) })).toMatchObject([
      { path: 'channels.c0.schema', message: expect.stringMatching(/schema is invalid/) },
    ]);
    expect(await problemsOf({ channels: channels(2, { $ref: 'https://example.com/x' }) })).toHaveLength(1);
  });

  it('are limited in number', async () => {
    expect(await problemsOf({ channels: channels(250, { type: 'string' }) })).toEqual([]);
    expect(await problemsOf({ channels: channels(251, { type: 'string' }) })).toMatchObject([
      { path: 'channels.c250.schema', message: expect.stringMatching(/more than 250/) },
    ]);
  });
});
