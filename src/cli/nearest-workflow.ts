import { type Client, RefusedError } from '../client/index.ts';
import { nearest } from '../protocol/format/nearest.ts';

/** More would make a misspelt name slow; those changed last come first. */
const COMPARED_MAX = 500;

/** Does something with a workflow. If there is none of this name, the error gets the nearest name that exists. */
export async function withWorkflow<T>(client: Client, workflowId: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof RefusedError) || !isAboutWorkflow(error)) throw error;
    const meant = nearest(workflowId, await workflowIds(client));
    if (meant === undefined || meant === workflowId) throw error;
    const { status, code, message, details } = error;
    throw new RefusedError({ status, code, message, details: { ...details, nearest: meant } });
  }
}

function isAboutWorkflow({ status, details }: RefusedError): boolean {
  return status === 404 || details.field === 'workflowId';
}

/** A caller who may not list workflows gets no suggestion. */
async function workflowIds(client: Client): Promise<string[]> {
  const ids: string[] = [];
  try {
    for await (const { id } of client.each('listWorkflows', { limit: 200 })) {
      if (ids.push(id) >= COMPARED_MAX) break;
    }
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
  }
  return ids;
}
