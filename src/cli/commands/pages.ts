import type { Page } from '../../client/index.ts';
import type { Given } from '../command.ts';
import { wholeNumber } from '../values.ts';

export const PAGE_FLAGS: Readonly<Record<string, string>> = {
  '--limit <number>': 'how many to show, at most 200',
  '--cursor <cursor>': 'where the page before ended',
};

export function pageQuery({ limit, cursor }: Given['options']): { readonly limit?: number; readonly cursor?: string } {
  return {
    ...(limit ? { limit: wholeNumber(String(limit), '--limit') } : {}),
    ...(cursor ? { cursor: String(cursor) } : {}),
  };
}

export function morePages({ nextCursor }: Page<unknown>): string[] {
  return nextCursor === undefined ? [] : ['', `There are more: add --cursor ${nextCursor}`];
}
