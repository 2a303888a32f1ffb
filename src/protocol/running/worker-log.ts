/** What the host writes into the log of a run about workers. Kept apart from the schemas, which take long to load. */

const NO_WORKER = 'waiting for a worker of ';

/** The message that says that no worker serves a type. */
export function noWorkerMessage(typeId: string): string {
  return `${NO_WORKER}${typeId}`;
}

/** Whether a message of the log says so. */
export function isNoWorkerMessage(message: string): boolean {
  return message.startsWith(NO_WORKER);
}
