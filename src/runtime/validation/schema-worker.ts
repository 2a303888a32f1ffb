import { parentPort } from 'node:worker_threads';
import { lowerThreadPriority } from '../../system/thread-priority.ts';
import { type SchemaReply, type SchemaRequest, schemaAnswerer } from './schema-validator.ts';

/** What the thread sends: once that it is ready, then its replies. */
export type ThreadMessage = 'ready' | SchemaReply;

// Runs in a thread of its own: see `schema-threads.ts`.
lowerThreadPriority();
const answer = schemaAnswerer();
const send = (message: ThreadMessage): void => parentPort?.postMessage(message);
parentPort?.on('message', (request: SchemaRequest) => send(answer(request)));
send('ready');
