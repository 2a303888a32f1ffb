/**
 * Thrown when the host could not do something now and can later: nothing is known to be wrong with what was asked. A
 * run that meets it goes on later, and a caller is asked to try again.
 */
export class TemporaryFailure extends Error {
  override readonly name: string = 'TemporaryFailure';
}
