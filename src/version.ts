/** The version of this package; `test/tidy.test.ts` keeps it equal to the one in package.json. */
export const VERSION = '0.1.0';
