import { fatal, retryable } from 'capstan/build';

/** What a service answered, as text; JSON is up to the caller. */
export interface Answer {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends one request. What may pass later, such as a network that is down or a service that is busy, is an error that lets
 * the node be tried again; any other refusal is final.
 */
export async function send(service: string, url: string | URL, request: RequestInit): Promise<Answer> {
  const response = await fetch(url, request).catch((error: Error) => {
    throw retryable(`${service}_unreachable`, `${service} cannot be reached: ${error.message}`);
  });
  const text = await response.text();
  const { status } = response;
  if (status === 429 || status >= 500) throw retryable(`${service}_busy`, `${service} answered ${status}.`);
  return { status, text };
}

/** A setting of the process that runs the nodes. Secrets are never part of a workflow, which many people read. */
export function setting(name: string, otherwise?: string): string {
  const value = process.env[name] ?? otherwise;
  if (value === undefined) throw fatal('not_configured', `Set ${name} where the nodes run.`);
  return value;
}
