import type { Answer, Api } from './api.ts';

/** An operation as the host's OpenAPI document describes it. */
export interface Operation {
  readonly operationId: string;
  readonly method: string;
  /** With `{name}` for parameters. */
  readonly path: string;
  readonly isPublic: boolean;
  /** The scope it takes, where it takes a credential. */
  readonly scope: string | undefined;
  readonly hasBody: boolean;
  readonly raw: Answer['body'];
}

/** Every operation that the host says it serves. */
export async function operationsOf(api: Api): Promise<Operation[]> {
  const { body } = await api.get('/v1/openapi.json');
  return Object.entries<Answer['body']>(body.paths).flatMap(([path, methods]) =>
    Object.entries<Answer['body']>(methods).map(([method, raw]) => ({
      operationId: raw.operationId,
      method: method.toUpperCase(),
      path,
      isPublic: Array.isArray(raw.security) && raw.security.length === 0,
      scope: raw['x-scope'],
      hasBody: raw.requestBody !== undefined,
      raw,
    })),
  );
}

/** The path with its parameters filled in. */
export function fill(path: string, values: Record<string, string>, otherwise = 'absent'): string {
  return path.replace(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(values[name] ?? otherwise));
}
