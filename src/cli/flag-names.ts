import { RefusedError } from '../client/index.ts';
import type { Context } from './command.ts';

/** Members of a request, as patterns of their names in messages, and the flags that set them. */
type FlagNames = readonly (readonly [member: RegExp, flag: string])[];

/** Does something; what the host refuses it for names flags instead of members of the request that they set. */
export async function namingFlags<T>({ isJson }: Context, names: FlagNames, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof RefusedError) || isJson) throw error;
    const { status, code, details, retryAfterMs } = error;
    const message = inFlags(error.message, names);
    const field = typeof details.field === 'string' ? { field: inFlags(details.field, names) } : {};
    throw new RefusedError({ status, code, message, details: { ...details, ...field }, retryAfterMs });
  }
}

function inFlags(text: string, names: FlagNames): string {
  return names.reduce((renamed, [member, flag]) => renamed.replaceAll(member, flag), text);
}
