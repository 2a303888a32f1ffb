import type { OpenInterrupt } from '../../../engine/run/run.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import type { Write } from '../../../store/sql.ts';
import { closeInterrupt, type InterruptState, insertInterrupt } from './records.ts';

/** Keeps the table of interrupts equal to the event logs, in the same units that append to them. */
export const projectInterrupts: Reaction = (append) => append.events.flatMap((event) => writesFor(append, event));

function writesFor(append: Append, event: RunEvent): Write[] {
  switch (event.type) {
    case 'interrupt.requested':
      return opened(append, event.nodeId!, event.payload.key);
    case 'interrupt.resolved':
      return [closed(append, event.payload.nodeId, event.payload.reason === 'timeout' ? 'expired' : 'resolved')];
    case 'node.failed':
      return hasAsked(append, event.payload.nodeId)
        ? [closed(append, event.payload.nodeId, event.payload.error.code === 'interrupt_expired' ? 'expired' : 'gone')]
        : [];
    case 'node.cancelled':
      return hasAsked(append, event.payload.nodeId) ? [closed(append, event.payload.nodeId, 'gone')] : [];
    default:
      return [];
  }
}

function hasAsked({ run }: Append, nodeId: string): boolean {
  return run.nodes[run.plan.node(nodeId)!.index]!.interrupts > 0;
}

function closed({ run, identity }: Append, nodeId: string, state: InterruptState): Write {
  return closeInterrupt(identity.subject.tenant, run.facts.runId, nodeId, state);
}

/** An interrupt that was requested and answered in the same append has no row. */
function opened({ run, identity }: Append, nodeId: string, key: string): Write[] {
  const planned = run.plan.node(nodeId)!;
  const { interrupt } = run.nodes[planned.index]!;
  if (interrupt?.key !== key) return [];
  const { data } = interrupt;
  return [
    insertInterrupt({
      interrupt_id: interrupt.interruptId,
      tenant: identity.subject.tenant,
      workspace: identity.subject.workspace ?? null,
      run_id: run.facts.runId,
      node_id: nodeId,
      kind: interrupt.kind,
      title: titleOf(interrupt, planned.node.name),
      is_gate: typeof data.gateId === 'string' ? 1 : 0,
      required_scope: text(data.requiredScope) ?? 'approvals:respond',
      artifact_hash: text(data.artifactHash) ?? null,
      requested_at: interrupt.requestedAt,
      expires_at: interrupt.expiresAt ?? null,
      state: 'open',
    }),
  ];
}

function titleOf({ data }: OpenInterrupt, nodeName: string): string {
  const [first] = Array.isArray(data.questions) ? data.questions : [];
  return text(data.title) ?? text(first?.question) ?? text(data.eventType) ?? text(data.customKind) ?? nodeName;
}

/** Columns cannot hold NUL; text from definitions may. */
function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.replaceAll('\0', '') : undefined;
}
