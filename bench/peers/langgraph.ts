/** A LangGraph graph of one node with the SQLite checkpointer: `node langgraph.ts <folder>`. */
import { randomUUID } from 'node:crypto';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import { serve } from './serve.ts';

/**
 * The driver of Node in the place of the one that the checkpointer brings, as far as it is asked: both lead to the same
 * database, and this one needs no compiler where it is installed.
 */
function driverOf(database: DatabaseSync) {
  const bound = (params: unknown[]) => params.map((param) => (param ?? null) as SQLInputValue);
  return {
    exec: (text: string) => database.exec(text),
    pragma: (text: string) => database.exec(`PRAGMA ${text}`),
    prepare: (text: string) => {
      const statement = database.prepare(text);
      return {
        run: (...params: unknown[]) => statement.run(...bound(params)),
        get: (...params: unknown[]) => statement.get(...bound(params)),
        all: (...params: unknown[]) => statement.all(...bound(params)),
      };
    },
    transaction:
      <A extends unknown[]>(act: (...given: A) => void) =>
      (...given: A) => {
        database.exec('BEGIN');
        act(...given);
        database.exec('COMMIT');
      },
  };
}

const driver = driverOf(new DatabaseSync(`${process.argv[2]}/langgraph.db`));
driver.pragma('journal_mode = WAL');
// Everybody here flushes every commit.
driver.pragma('synchronous = FULL');
const checkpointer = new SqliteSaver(driver as unknown as ConstructorParameters<typeof SqliteSaver>[0]);

const State = Annotation.Root({ result: Annotation<string> });
const graph = new StateGraph(State)
  .addNode('noop', async () => ({ result: 'done' }))
  .addEdge(START, 'noop')
  .addEdge('noop', END)
  .compile({ checkpointer });

await serve(() => graph.invoke({ result: '' }, { configurable: { thread_id: randomUUID() }, durability: 'sync' }));
