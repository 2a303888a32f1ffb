import { fileURLToPath } from 'node:url';

const FRAME = /(file:\/\/\/?.+?|[A-Za-z]:\\.+?|\/.+?):(\d+):(\d+)\)?$/;

/** Where a function was called from, as `file:line:column`; problems with what it defines are reported there. */
export function callSiteOf(called: (...given: never) => unknown): string | undefined {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, called);
  return placesIn(holder.stack ?? '')[0];
}

/** The places that a stack names, innermost first. */
export function placesIn(stack: string): string[] {
  return stack.split('\n').flatMap((line) => {
    const [, file, row, column] = FRAME.exec(line) ?? [];
    return file === undefined ? [] : [`${file.startsWith('file:') ? fileURLToPath(file) : file}:${row}:${column}`];
  });
}
