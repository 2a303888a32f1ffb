import { registerHooks } from 'node:module';
import { extname } from 'node:path';

const OWN_NAME = 'capstan/build';
const ENTRY = new URL(`./index${extname(import.meta.url)}`, import.meta.url).href;

/** The file to start Node with (`--import`), so that the tests of a project find `capstan/build`. */
export const REGISTER = new URL(`./register${extname(import.meta.url)}`, import.meta.url).href;

/**
 * Lets projects import `capstan/build`: they get the copy that loads them, wherever they are and whether or not the
 * package is installed beside them.
 */
export function serveOwnImports(): void {
  registerHooks({
    resolve: (name, context, next) => (name === OWN_NAME ? { url: ENTRY, shortCircuit: true } : next(name, context)),
  });
}
