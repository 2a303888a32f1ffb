import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { Verifier, VerifierRequest } from '../../../protocol/learning/verifiers.ts';
import { LIST_START, ListQuery, numberAndIdIn, Page, pageFrom, readPage } from '../../page.ts';
import { answer, NO_CONTENT, reply, route, transact } from '../../request.ts';
import type { ListedVerifier, Verifiers } from './door.ts';

const operation = route<{ readonly verifiers: Verifiers }>();

const VERIFIERS = '/v1/host/capstan/verifiers';
const VerifierParams = Closed({
  verifierId: Type.String({ minLength: 1, maxLength: 160, description: 'An id, or id@version for an earlier version' }),
});

const listVerifiers = operation({
  operationId: 'listVerifiers',
  summary: 'Verifiers, most recently changed first',
  method: 'GET',
  path: VERIFIERS,
  scope: 'goals:read',
  query: ListQuery({}),
  replies: { 200: Page(Verifier) },
  refusals: [400],
  handle: async ({ caller, query }, { verifiers }) => {
    const page = pageFrom(query, numberAndIdIn);
    if (isRefusal(page)) return page;
    const found = readPage(page, {
      read: (after, limit) => {
        const { number: updatedAt, id: verifierId } = after ?? LIST_START;
        return verifiers.list(caller, { updatedAt, verifierId }, limit);
      },
      show: ({ verifier }) => verifier,
      positionOf: placeOf,
    });
    return reply(200, await found);
  },
});

function placeOf({ updatedAt, verifier: { id } }: ListedVerifier): string {
  return `${updatedAt}.${id}`;
}

const putVerifier = operation({
  operationId: 'putVerifier',
  summary: 'Store a verifier; an id that exists gets a new version',
  method: 'POST',
  path: VERIFIERS,
  scope: 'goals:write',
  body: VerifierRequest,
  replies: { 201: Verifier },
  refusals: [400, 409],
  handle: ({ caller, body }, { verifiers }) =>
    transact(
      () => verifiers.put(caller, body),
      (stored) => reply(201, stored),
    ),
});

const getVerifier = operation({
  operationId: 'getVerifier',
  summary: 'A verifier',
  method: 'GET',
  path: `${VERIFIERS}/{verifierId}`,
  scope: 'goals:read',
  params: VerifierParams,
  replies: { 200: Verifier },
  refusals: [404],
  handle: async ({ caller, params }, { verifiers }) => answer(200, await verifiers.get(caller, params.verifierId)),
});

const deleteVerifier = operation({
  operationId: 'deleteVerifier',
  summary: 'Remove a verifier; its verdicts stay',
  method: 'DELETE',
  path: `${VERIFIERS}/{verifierId}`,
  scope: 'goals:write',
  params: VerifierParams,
  replies: { 204: 'nothing' },
  refusals: [404],
  handle: ({ caller, params }, { verifiers }) =>
    transact(
      () => verifiers.remove(caller, params.verifierId),
      () => NO_CONTENT,
    ),
});

/** The operations on verifiers. */
export const routes = [listVerifiers, putVerifier, getVerifier, deleteVerifier];
