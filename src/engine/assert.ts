/** We were wrong about something. The attempt stops; the run is left as its log has it. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

export function assert(condition: unknown, promise: string): asserts condition {
  if (!condition) throw new BrokenPromise(promise);
}
