/** A LangGraph graph of one node with the SQLite checkpointer: `node langgraph.ts <folder>`. */
import { randomUUID } from 'node:crypto';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import { serve } from './serve.ts';

const checkpointer = SqliteSaver.fromConnString(`${process.argv[2]}/langgraph.db`);
// Its driver is built to flush only at checkpoints of the write-ahead log; everybody here flushes every commit.
checkpointer.db.pragma('journal_mode = WAL');
checkpointer.db.pragma('synchronous = FULL');

const State = Annotation.Root({ result: Annotation<string> });
const graph = new StateGraph(State)
  .addNode('noop', async () => ({ result: 'done' }))
  .addEdge(START, 'noop')
  .addEdge('noop', END)
  .compile({ checkpointer });

await serve(() => graph.invoke({ result: '' }, { configurable: { thread_id: randomUUID() }, durability: 'sync' }));
