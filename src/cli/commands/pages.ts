import type { Page } from '../../client/index.ts';
import type { CommandInput } from '../command.ts';
import { parseInteger } from '../values.ts';

/** The flags of every command that lists pages. */
export const PAGE_FLAGS: Readonly<Record<string, string>> = {
  '--limit <number>': 'page size, at most 200',
  '--cursor <cursor>': 'continue after this cursor from the previous page',
};

/** Reads --limit and --cursor into query parameters. */
export function pageQuery({ limit, cursor }: CommandInput['options']): {
  readonly limit?: number;
  readonly cursor?: string;
} {
  return {
    ...(limit ? { limit: parseInteger(String(limit), '--limit') } : {}),
    ...(cursor ? { cursor: String(cursor) } : {}),
  };
}

/** The line that says how to get the next page, if there is one. */
export function nextPageHint({ nextCursor }: Page<unknown>): string[] {
  return nextCursor === undefined ? [] : ['', `More results: add --cursor ${nextCursor}`];
}
