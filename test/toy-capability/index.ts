import { Type } from 'typebox';
import { defineCapability, door } from '../../src/capabilities/capability.ts';
import { bindRoutes, type Caller, reply, route, transact } from '../../src/capabilities/request.ts';
import { defineSettings } from '../../src/capabilities/settings.ts';
import { Audit } from '../../src/capabilities/trust/audit/door.ts';
import type { Refusal } from '../../src/protocol/errors.ts';
import { Closed } from '../../src/protocol/format/schema.ts';
import { type Change, changeOf } from '../../src/runtime/change.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import type { WorkHandler } from '../../src/runtime/work-kind.ts';
import { ensureWork } from '../../src/store/queue.ts';
import { sql } from '../../src/store/sql.ts';

/** A capability with one of everything: it shows what adding one takes. */

/** Postcards that are franked some time after they are written. */
export interface Postcards {
  write(caller: Caller, text: string): Promise<Change<Postcard> | Refusal>;
}

export const Postcards = door<Postcards>()('postcards');

interface Postcard {
  readonly id: string;
  readonly text: string;
  readonly stamp: string | null;
}

const FRANK = 'frank-postcard';

const postcardSettings = defineSettings({
  variables: { stamp: { variable: 'CAPSTAN_TOY_STAMP', meaning: 'what postcards are franked with (penny)' } },
  read: (read) => ({ stamp: read.identifier('stamp') ?? 'penny' }),
});

const TABLES = [
  {
    id: 'toy-1',
    statements: [
      'CREATE TABLE toy_postcards (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, text TEXT NOT NULL, stamp TEXT)',
    ],
  },
];

class PostcardService implements Postcards {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async write({ subject: { tenant } }: Caller, text: string): Promise<Change<Postcard> | Refusal> {
    const id = this.#runtime.ids.next('toy-');
    const writes = [
      sql('INSERT INTO toy_postcards (id, tenant, text) VALUES ($1, $2, $3)', id, tenant, text),
      ensureWork({ workId: id, kind: FRANK, tenant, dueAt: 0 }),
    ];
    const announce = [() => this.#runtime.hub.wakeWorkers(id)];
    return changeOf({ id, text, stamp: null }, writes, { announce });
  }

  async list({ subject: { tenant } }: Caller): Promise<Postcard[]> {
    return this.#runtime.store.read<Postcard>(
      sql('SELECT id, text, stamp FROM toy_postcards WHERE tenant = $1 ORDER BY id', tenant),
    );
  }

  frank(stamp: string): WorkHandler {
    return async ({ work_id }) => ({
      change: changeOf(undefined, [sql('UPDATE toy_postcards SET stamp = $1 WHERE id = $2', stamp, work_id)]),
    });
  }
}

const operation = route<{ readonly postcards: PostcardService }>();
const PATH = '/v1/host/capstan/postcards';
const Card = Closed({ id: Type.String(), text: Type.String(), stamp: Type.Union([Type.String(), Type.Null()]) });

const routes = [
  operation({
    operationId: 'writePostcard',
    summary: 'Write a postcard',
    method: 'POST',
    path: PATH,
    scope: 'runs:create',
    body: Closed({ text: Type.String() }),
    replies: { 201: Card },
    handle: ({ caller, body }, { postcards }) =>
      transact(
        () => postcards.write(caller, body.text),
        (card) => reply(201, card),
      ),
  }),
  operation({
    operationId: 'listPostcards',
    summary: 'List postcards',
    method: 'GET',
    path: PATH,
    scope: 'runs:read',
    replies: { 200: Type.Array(Card) },
    handle: async ({ caller }, { postcards }) => reply(200, await postcards.list(caller)),
  }),
];

/** The whole capability: one value. */
export const postcards = defineCapability({
  name: 'postcards',
  provides: Postcards,
  needs: [Audit],
  settings: postcardSettings,
  tables: TABLES,
  build: ({ runtime }, _needs, { stamp }) => {
    const service = new PostcardService(runtime);
    return {
      service,
      advertise: () => ({ toyPostcards: { supported: true, stamp } }),
      routes: bindRoutes(routes, { postcards: service }),
      work: { [FRANK]: { handle: service.frank(stamp) } },
    };
  },
});
