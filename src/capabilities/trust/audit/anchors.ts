import { open } from 'node:fs/promises';
import { type AnchorRecord, anchorRecordFrom, anchorRecordsOf } from '../../../protocol/trust/audit-anchors.ts';
import type { Egress, EgressRequest, EgressResponse } from '../../../system/egress.ts';
import { linesOf } from '../../../system/lines.ts';

/** A place outside the host that keeps copies of checkpoints. */
export interface Anchor {
  /** Settles when the place has them. The same record may come twice. */
  add(records: readonly AnchorRecord[]): Promise<void>;
  /** The records of a tenant, where they can be read back. */
  read?(tenant: string): Promise<readonly AnchorRecord[]>;
}

const TIMEOUT_MS = 10_000;
const ANSWER_MAX = 100_000;
const SEQUENCE_DIGITS = 15;
const FILE = 'file:';
const OBJECTS = 'put:';
const HTTP = /^https?:\/\//;

/** Says what is wrong with the location of an anchor; undefined if nothing is. */
export function anchorProblem(location: string): string | undefined {
  const isKnown = location.startsWith(FILE) || HTTP.test(location.replace(OBJECTS, ''));
  return isKnown ? undefined : ' must be file:<path>, a URL or put:<URL>, or several of these with commas.';
}

/** The anchor at a location. `token` is sent to URLs as a bearer token. */
export function openAnchor(location: string, egress: Pick<Egress, 'send'>, token: string | undefined): Anchor {
  if (location.startsWith(FILE)) return fileAnchor(location.slice(FILE.length));
  const send = sender(egress, token);
  return location.startsWith(OBJECTS)
    ? objectAnchor(location.slice(OBJECTS.length), send)
    : webhookAnchor(location, send);
}

/** A file that is only ever appended to, one record per line. */
function fileAnchor(path: string): Anchor {
  return {
    add: async (records) => {
      const file = await open(path, 'a', 0o600);
      try {
        await file.appendFile(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
        await file.sync();
      } finally {
        await file.close();
      }
    },
    read: (tenant) => anchorRecordsOf(tenant, linesOf(path)),
  };
}

type Send = (request: Pick<EgressRequest, 'url' | 'method' | 'headers' | 'body'>) => Promise<EgressResponse>;

/** The operator names these URLs, so they may be in a private network. */
function sender(egress: Pick<Egress, 'send'>, token: string | undefined): Send {
  const authorization: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  return ({ headers, ...request }) =>
    egress.send({
      ...request,
      headers: { 'Content-Type': 'application/json', ...authorization, ...headers },
      timeoutMs: TIMEOUT_MS,
      maxBytes: ANSWER_MAX,
      trusted: true,
    });
}

function webhookAnchor(url: string, send: Send): Anchor {
  return {
    add: async (records) => {
      const { status } = await send({ url, method: 'POST', body: JSON.stringify({ checkpoints: records }) });
      if (status < 200 || status > 299) throw new Error(`The anchor returned status ${status}.`);
    },
  };
}

/** One object per checkpoint, which is never overwritten: `<url>/<tenant>/<sequence>.json`. */
function objectAnchor(url: string, send: Send): Anchor {
  const base = url.replace(/\/+$/, '');
  const put = async (record: AnchorRecord): Promise<void> => {
    const sequence = String(record.atSequence).padStart(SEQUENCE_DIGITS, '0');
    const object = `${base}/${encodeURIComponent(record.tenant)}/${sequence}.json`;
    const body = `${JSON.stringify(record)}\n`;
    const { status } = await send({ url: object, method: 'PUT', headers: { 'If-None-Match': '*' }, body });
    if (status >= 200 && status <= 299) return;
    if (status !== 412) throw new Error(`The anchor returned status ${status}.`);
    const { body: existing } = await send({ url: object });
    if (anchorRecordFrom(existing.toString('utf8'))?.merkleRoot === record.merkleRoot) return;
    throw new Error(`The anchor has another checkpoint of ${record.tenant} at ${record.atSequence}.`);
  };
  return {
    add: async (records) => {
      for (const record of records) await put(record);
    },
  };
}
