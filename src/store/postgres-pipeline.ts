import pg from 'pg';
import { Messages } from './postgres-messages.ts';
import type { Param, Row } from './sql.ts';

/** A statement for PostgreSQL, prepared once per connection under its name, or each time if it has none. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly Param[];
  /** Whether its rows are wanted. */
  readonly returns?: boolean | undefined;
}

/** A statement failed: nothing of its pipeline was applied, and the connection can still be used. */
export class StatementFailed extends Error {
  override readonly name = 'StatementFailed';
  /** The place of the statement in its pipeline. */
  readonly index: number;
  /** The SQLSTATE that PostgreSQL gave. */
  readonly code: string | undefined;

  constructor(index: number, cause: pg.DatabaseError) {
    super(cause.message, { cause });
    this.index = index;
    this.code = cause.code;
  }

  /** The same failure, in a pipeline where the statement has another place. */
  at(index: number): StatementFailed {
    return new StatementFailed(index, this.cause as pg.DatabaseError);
  }
}

/** A connection and the statements that it has prepared, by name. */
export interface PreparingClient {
  readonly client: pg.Client;
  readonly prepared: Map<string, Prepared>;
}

/** How the rows of a prepared statement are read, from the first time on that they were wanted. */
interface Prepared {
  decode?: Decode;
}

/**
 * Executes statements in one transaction and one round trip; resolves with the rows of each once it is committed. They
 * are sent together with the end of the transaction, so PostgreSQL never waits for this process while it holds locks.
 */
export function executeTogether(
  { client, prepared }: PreparingClient,
  statements: readonly PreparedStatement[],
  typesOf: pg.CustomTypesConfig,
): Promise<readonly (readonly Row[])[]> {
  return new Promise((resolve, reject) => {
    const pipeline = new Pipeline(statements, prepared, typesOf);
    pipeline.callback = (error) => (error ? reject(error) : resolve(pipeline.rows));
    client.query(pipeline);
  });
}

type Decode = (row: readonly (string | null)[]) => Row;

/**
 * Statements of the extended query protocol that end in a single Sync. Without BEGIN they are one transaction, which
 * PostgreSQL commits at the Sync; after an error it skips the rest. The methods are those that `pg` calls.
 */
class Pipeline implements pg.Submittable {
  readonly rows: Row[][];
  readonly #statements: readonly PreparedStatement[];
  readonly #prepared: Map<string, Prepared>;
  readonly #typesOf: pg.CustomTypesConfig;
  /** Names whose preparation was sent and not confirmed yet. */
  readonly #preparing: string[] = [];
  #stopListening = (): void => {};
  #completed = 0;
  #decode: Decode | undefined;
  /** Set by whoever waits; `pg` wraps it when queries have a time limit. */
  callback: (error?: Error | null) => void = () => {};

  constructor(
    statements: readonly PreparedStatement[],
    prepared: Map<string, Prepared>,
    typesOf: pg.CustomTypesConfig,
  ) {
    this.#statements = statements;
    this.#prepared = prepared;
    this.#typesOf = typesOf;
    this.rows = statements.map(() => []);
  }

  submit(connection: pg.Connection): null {
    const onPrepared = (): void => {
      const name = this.#preparing.shift();
      if (name) this.#prepared.set(name, {});
    };
    connection.on('parseComplete', onPrepared);
    this.#stopListening = () => void connection.off('parseComplete', onPrepared);
    const messages = new Messages();
    for (const statement of this.#statements) this.#write(messages, statement);
    messages.sync();
    if (connection.stream.writable) connection.stream.write(messages.taken());
    return null;
  }

  #write(messages: Messages, { name, text, values, returns }: PreparedStatement): void {
    const known = name === '' ? undefined : this.#prepared.get(name);
    if (!known && (name === '' || !this.#preparing.includes(name))) {
      this.#preparing.push(name);
      messages.parse(name, text);
    }
    messages.bind(name, values);
    if (returns && !known?.decode) messages.describe();
    messages.execute();
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    const decode = decoderOf(fields, this.#typesOf);
    this.#decode = decode;
    const known = this.#prepared.get(this.#statements[this.#completed]!.name);
    if (known) known.decode = decode;
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const { name, returns } = this.#statements[this.#completed]!;
    if (!returns) return;
    const decode = this.#decode ?? this.#prepared.get(name)!.decode!;
    this.rows[this.#completed]!.push(decode(fields));
  }

  handleCommandComplete(): void {
    this.#completed++;
    this.#decode = undefined;
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete();
  }

  handleError(error: Error): void {
    this.#stopListening();
    // FATAL means that the connection is lost; an error at the end is one of the commit itself.
    const isOfStatement = error instanceof pg.DatabaseError && error.severity === 'ERROR';
    const hasStatement = this.#completed < this.#statements.length;
    this.callback(isOfStatement && hasStatement ? new StatementFailed(this.#completed, error) : error);
  }

  handleReadyForQuery(): void {
    this.#stopListening();
    this.callback();
  }
}

function decoderOf(fields: readonly pg.FieldDef[], typesOf: pg.CustomTypesConfig): Decode {
  const columns = fields.map(({ name, dataTypeID }) => ({
    name,
    parse: typesOf.getTypeParser(dataTypeID, 'text') as (text: string) => unknown,
  }));
  return (texts) => {
    const row: Row = {};
    columns.forEach(({ name, parse }, index) => {
      const text = texts[index] ?? null;
      row[name] = text === null ? null : parse(text);
    });
    return row;
  };
}
