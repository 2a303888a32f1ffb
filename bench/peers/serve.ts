import Fastify from 'fastify';

/** Puts a library behind the HTTP framework that Capstan has: one request, answered when the work is done. */
export async function serve(work: () => Promise<unknown>): Promise<void> {
  const app = Fastify();
  app.post('/', async () => {
    await work();
    return { done: true };
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  process.once('SIGTERM', () => process.exit(0));
  console.log(`listening on ${url}`);
}
