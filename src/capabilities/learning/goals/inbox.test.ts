import { expect, it } from 'vitest';
import type { Store } from '../../../store/store.ts';
import { goalInboxSources } from './inbox.ts';

it('goals are in the inbox of callers that may read goals', () => {
  const scopes = goalInboxSources({} as Store).map(({ scope }) => scope);
  expect(scopes).toEqual(['goals:read', 'goals:read', 'goals:read']);
});
