import { type TSchema, Type } from 'typebox';
import { Closed } from '../../../protocol/format/schema.ts';
import { answer, NO_CONTENT, reply, route, transact } from '../../request.ts';
import type { Starters, Switchable } from './door.ts';

/** How the operations on starters of one family are described. */
interface StarterOperations {
  readonly noun: 'Schedule' | 'Heartbeat' | 'Commitment';
  readonly path: string;
  readonly request: TSchema;
  readonly document: TSchema;
  readonly summaries: Readonly<Record<'create' | 'get' | 'delete', string>>;
}

/** The operations that every family has, besides its list. */
export function starterRoutes<Request, Document extends object>(family: StarterOperations) {
  const { noun, path, request, document, summaries } = family;
  const operation = route<{ readonly starters: Starters<Request, Document, never> }>();
  const { idOf, ...one } = resourceOf(family);
  return {
    create: operation({
      operationId: `create${noun}`,
      summary: summaries.create,
      method: 'POST',
      path,
      scope: 'schedules:write',
      body: request,
      replies: { 201: document },
      refusals: [400, 409],
      handle: ({ caller, body }, { starters }) =>
        transact(
          // The edge has validated the body against the schema of the request.
          () => starters.create(caller, body as Request),
          (created) => reply(201, created),
        ),
    }),
    get: operation({
      operationId: `get${noun}`,
      summary: summaries.get,
      method: 'GET',
      ...one,
      scope: 'manifest:read',
      replies: { 200: document },
      refusals: [404],
      handle: async ({ caller, params }, { starters }) => answer(200, await starters.find(caller, idOf(params))),
    }),
    delete: operation({
      operationId: `delete${noun}`,
      summary: summaries.delete,
      method: 'DELETE',
      ...one,
      scope: 'schedules:write',
      replies: { 204: 'nothing' },
      refusals: [404, 409],
      handle: ({ caller, params }, { starters }) =>
        transact(
          () => starters.remove(caller, idOf(params)),
          () => NO_CONTENT,
        ),
    }),
  };
}

/** The operations that disable and enable starters. */
export function switchRoutes(
  family: Pick<StarterOperations, 'noun' | 'path' | 'document'>,
  summaries: Readonly<Record<'pause' | 'resume', string>>,
) {
  const operation = route<{ readonly starters: Switchable<object> }>();
  const { idOf, params, path } = resourceOf(family);
  return (['pause', 'resume'] as const).map((verb) =>
    operation({
      operationId: `${verb}${family.noun}`,
      summary: summaries[verb],
      method: 'POST',
      path: `${path}:${verb}`,
      scope: 'schedules:write',
      params,
      replies: { 200: family.document },
      refusals: [404, 409],
      handle: ({ caller, params: named }, { starters }) =>
        transact(
          () => starters.setEnabled(caller, idOf(named), verb === 'resume'),
          (changed) => reply(200, changed),
        ),
    }),
  );
}

/** Where a single starter is addressed. */
export function resourceOf({ noun, path }: Pick<StarterOperations, 'noun' | 'path'>) {
  const name = `${noun.toLowerCase()}Id`;
  return {
    path: `${path}/{${name}}`,
    params: Closed({ [name]: Type.String({ minLength: 1, maxLength: 128 }) }),
    idOf: (params: Readonly<Record<string, string>>): string => params[name]!,
  };
}
