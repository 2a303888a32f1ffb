import { maskKnown } from '../../../engine/masking/learning.ts';
import { maskQuestion } from '../../../engine/masking/mask.ts';
import type { Run } from '../../../engine/run/run.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import type { Write } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { oneLine } from '../../one-line.ts';
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
  const shown = shownData(run, nodeId, data);
  const title = titleOf(shown, planned.node.name);
  return [
    insertInterrupt({
      interrupt_id: interrupt.interruptId,
      tenant: identity.subject.tenant,
      workspace: identity.subject.workspace ?? null,
      run_id: run.facts.runId,
      node_id: nodeId,
      kind: interrupt.kind,
      title,
      about: text(subjectIn(shown, title)) ?? null,
      is_gate: typeof data.gateId === 'string' ? 1 : 0,
      required_scope: text(data.requiredScope) ?? 'approvals:respond',
      artifact_hash: text(data.artifactHash) ?? null,
      requested_at: interrupt.requestedAt,
      expires_at: interrupt.expiresAt ?? null,
      state: 'open',
    }),
  ];
}

/** What readers of the run get to see of a question. */
function shownData({ plan, known }: Run, nodeId: string, data: JsonObject): JsonObject {
  const byPlace = maskQuestion(plan, nodeId, data, sha256Hex);
  return known ? maskKnown(known, byPlace) : byPlace;
}

/** What is asked, beyond its title: the first of what the node says about it. */
export function subjectIn(data: JsonObject, title: string): string | undefined {
  const [first] = Array.isArray(data.questions) ? data.questions.filter(isObject) : [];
  const said = [data.description, data.prompt, data.message, first?.question, data.artifactData, data.reason];
  return said.map(oneLine).find((line) => line !== undefined && line !== title);
}

function titleOf(data: JsonObject, nodeName: string): string {
  const [first] = Array.isArray(data.questions) ? data.questions : [];
  return text(data.title) ?? text(first?.question) ?? text(data.eventType) ?? text(data.customKind) ?? nodeName;
}

/** Columns cannot hold NUL; text from definitions may. */
function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.replaceAll('\0', '') : undefined;
}
