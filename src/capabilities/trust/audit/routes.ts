import { Type } from 'typebox';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { AnyObject, Closed, NonEmpty, Timestamp } from '../../../protocol/format/schema.ts';
import { AuditItem, AuditVerifyResult } from '../../../protocol/trust/audit.ts';
import { ListQuery, Page, pageFrom, pageOf } from '../../page.ts';
import { reply, route } from '../../request.ts';
import { itemOf } from './document.ts';
import type { EntryPosition } from './records.ts';
import type { AskedRange, AuditService } from './service.ts';

const operation = route<{ readonly audit: AuditService }>();

const Optional = Type.Optional;
const SequenceText = Type.String({
  pattern: '^[0-9]{1,15}$',
  description: 'A sequence; both ends of the range are included',
});
const RangeQuery = Closed({ fromSeq: Optional(SequenceText), toSeq: Optional(SequenceText) });

const verifyAudit = operation({
  operationId: 'verifyAudit',
  summary: 'Verify the hash chain and the checkpoints of the audit log',
  method: 'GET',
  path: '/v1/audit/verify',
  scope: 'audit:read',
  query: RangeQuery,
  replies: { 200: AuditVerifyResult },
  refusals: [400],
  handle: async ({ caller, query }, { audit }) => {
    const range = rangeOf(query);
    return isRefusal(range) ? range : reply(200, await audit.verify(caller, range));
  },
});

const listAudit = operation({
  operationId: 'listAudit',
  summary: 'List audit entries, newest first',
  method: 'GET',
  path: '/v1/host/capstan/audit',
  scope: 'audit:read',
  query: ListQuery({
    actor: Optional(NonEmpty),
    action: Optional(NonEmpty),
    since: Optional(Timestamp),
    until: Optional(Timestamp),
  }),
  replies: { 200: Page(AuditItem) },
  refusals: [400],
  handle: async ({ caller, query }, { audit }) => {
    const page = pageFrom(query, positionIn);
    if (isRefusal(page)) return page;
    const { actor, action, since, until } = query;
    const filter = { actor, action, since: timeOf(since), until: timeOf(until), before: page.after };
    const rows = await audit.list(caller, filter, page.limit + 1);
    return reply(
      200,
      pageOf(rows, page, itemOf, ({ at, sequence }) => `${at}.${sequence}`),
    );
  },
});

const exportAudit = operation({
  operationId: 'exportAudit',
  summary: 'The audit log as a file that can be verified without this host',
  method: 'GET',
  path: '/v1/host/capstan/audit/export',
  scope: 'audit:read',
  query: RangeQuery,
  replies: { 200: AnyObject },
  refusals: [400],
  handle: async ({ caller, query }, { audit }) => {
    const range = rangeOf(query);
    if (isRefusal(range)) return range;
    const chunks = await audit.export(caller, range);
    if (isRefusal(chunks)) return chunks;
    const headers = {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Disposition': 'attachment; filename="audit.json"',
    };
    return { status: 200, headers, stream: () => chunks };
  },
});

function rangeOf({ fromSeq, toSeq }: { fromSeq?: string; toSeq?: string }): AskedRange | Refusal {
  const range = {
    fromSeq: fromSeq === undefined ? undefined : Number(fromSeq),
    toSeq: toSeq === undefined ? undefined : Number(toSeq),
  };
  if ((range.toSeq ?? Number.POSITIVE_INFINITY) >= (range.fromSeq ?? 0)) return range;
  return refuse('validation_error', 'toSeq must not be smaller than fromSeq.', { field: 'toSeq' });
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/** Reads the position of an entry from the text in a cursor. */
function positionIn(text: string): EntryPosition | undefined {
  const [, at, sequence] = /^(\d{1,15})\.(\d{1,15})$/.exec(text) ?? [];
  return at === undefined ? undefined : { at: Number(at), sequence: Number(sequence) };
}

/** The operations on the audit log. */
export const routes = [verifyAudit, listAudit, exportAudit];
