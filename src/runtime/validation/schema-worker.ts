import { parentPort } from 'node:worker_threads';
import { type SchemaRequest, schemaAnswerer } from './schema-validator.ts';

// Runs in a thread of its own: see `schema-threads.ts`.
const answer = schemaAnswerer();
parentPort?.on('message', (request: SchemaRequest) => parentPort?.postMessage(answer(request)));
parentPort?.postMessage('ready');
