import { createReadStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** The lines of a text file, read as they are needed; none if there is no file. */
export async function* linesOf(path: string): AsyncGenerator<string> {
  if (!existsSync(path)) return;
  yield* createInterface({ input: createReadStream(path, 'utf8') });
}
