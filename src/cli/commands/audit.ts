import { createWriteStream } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { defined } from '../../protocol/format/json.ts';
import { type AnchorRecord, anchorRecordsOf } from '../../protocol/trust/audit-anchors.ts';
import type { Anomaly } from '../../protocol/trust/audit-chain.ts';
import { rawPublicKeyOf, spkiOf } from '../../system/ed25519.ts';
import { linesOf } from '../../system/lines.ts';
import { trustedKeysIn, type VerifiedFile, verifyAuditFile } from '../audit-file.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { PrincipalNames } from '../principal-names.ts';
import { columns, counted, table } from '../text.ts';
import { listOption, parseInteger, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';

/** More findings than this are only counted. */
const FINDINGS_SHOWN = 50;

const verify: CommandSpec = {
  name: 'verify',
  takes: '<file>',
  summary: 'Verify an exported audit log, without a host',
  flags: {
    '--key <key...>':
      'trust this public key and those it leads to: base64 or the path of a PEM file (default: the keys in the export)',
    '--anchor <file...>': 'compare with the checkpoints in this anchor file, which also shows a log that was cut off',
  },
  example: 'audit verify audit.json',
  json: 'result',
  async run(context, { args: [path = ''], options: { key, anchor } }) {
    try {
      const keys = await Promise.all(listOption(key).map(trustedKey));
      const anchors = listOption(anchor);
      const verified = await verifyAuditFile(path, { keys, anchored: (tenant) => anchoredIn(anchors, tenant) });
      const { result } = verified;
      context.show(result, () => report(verified, { keys, hasAnchors: anchors.length > 0 }));
      return result.chainValid ? EXIT.done : EXIT.refused;
    } catch (error) {
      context.terminal.err(`Cannot verify ${path}: ${(error as Error).message}\n`);
      return isUsage(error) ? EXIT.usage : EXIT.refused;
    }
  },
};

const check: CommandSpec = {
  name: 'check',
  summary: 'Ask the host to verify its own audit log',
  example: 'audit check',
  async run(context) {
    const result = await (await context.client()).verifyAudit();
    const { chainValid, anomalies } = result;
    context.show(result, () => [
      chainValid ? 'Valid: no tampering found.' : `TAMPERED WITH: ${counted(anomalies.length, 'finding')}`,
      'This is the result of the host itself. For an independent check run `capstan audit export` and `capstan audit verify`.',
    ]);
    return chainValid ? EXIT.done : EXIT.refused;
  },
};

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List audit entries, newest first',
  flags: {
    '--actor <principal>': 'entries of this principal',
    '--action <action>': 'entries with this action, for example run.create',
    '--since <time>': 'entries from this time on, for example 2026-01-31T12:00:00Z',
    '--until <time>': 'entries before this time',
    ...PAGE_FLAGS,
  },
  example: 'audit list --action key.create',
  async run(context, { options }) {
    const { actor, action, since, until } = options;
    const filter = defined({
      actor: stringOption(actor),
      action: stringOption(action),
      since: stringOption(since),
      until: stringOption(until),
    });
    const client = await context.client();
    const page = await client.listAudit({ ...filter, ...pageQuery(options) });
    const actors = page.items.map(({ actor }) => actor);
    const names = await new PrincipalNames(context, client).in(actors);
    // Beside the id, not instead of it: --actor takes the id.
    const row = (item: (typeof page.items)[number], index: number) => [
      item.sequence,
      item.at,
      names[index] === item.actor ? item.actor : `${names[index]} (${item.actor})`,
      item.action,
      item.target,
      item.outcome,
    ];
    context.show(
      page,
      () => [...table(['AT', 'TIME', 'WHO', 'WHAT', 'TARGET', 'OUTCOME'], page.items.map(row)), ...nextPageHint(page)],
      () => page.items.map(({ sequence }) => String(sequence)),
    );
    return EXIT.done;
  },
};

const exportLog: CommandSpec = {
  name: 'export',
  summary: 'Export the audit log to a file that can be verified without the host',
  flags: {
    '--output <file>': 'write to this file (default: standard output)',
    '--from <sequence>': 'first entry to export',
    '--to <sequence>': 'last entry to export',
  },
  example: 'audit export --output audit.json',
  async run(context, { options: { output, from, to } }) {
    const bytes = await (await context.client()).exportAudit({
      ...(from ? { fromSeq: parseInteger(String(from), '--from') } : {}),
      ...(to ? { toSeq: parseInteger(String(to), '--to') } : {}),
    });
    if (!output) {
      for await (const piece of bytes.pipeThrough(new TextDecoderStream())) context.terminal.out(piece);
      return EXIT.done;
    }
    await pipeline(bytes, createWriteStream(String(output), { mode: 0o600 }));
    context.note(`Wrote ${output}. Verify it with: capstan audit verify ${output}`);
    return EXIT.done;
  },
};

/** `capstan audit`. */
export const audit: CommandGroup = {
  name: 'audit',
  summary: 'Read, export and verify the audit log',
  commands: [list, exportLog, verify, check],
};

class BadKey extends Error {
  override readonly name = 'BadKey';
}

/** The checkpoints of a tenant in anchor files. A file that does not exist is an error, not an empty anchor. */
async function anchoredIn(paths: readonly string[], tenant: string): Promise<readonly AnchorRecord[]> {
  const read = await Promise.all(
    paths.map(async (path) => {
      await access(path);
      return anchorRecordsOf(tenant, linesOf(path));
    }),
  );
  return read.flat();
}

async function trustedKey(key: string): Promise<string> {
  const text = key.endsWith('.pem') ? await readFile(key, 'utf8') : key;
  try {
    return rawPublicKeyOf(text);
  } catch (error) {
    throw new BadKey('--key is not an Ed25519 public key.', { cause: error });
  }
}

/** A missing file or a malformed key says nothing about the log, so it is a usage error. */
function isUsage(error: unknown): boolean {
  return error instanceof BadKey || typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

function report(
  { file, result, anchored }: VerifiedFile,
  { keys, hasAnchors }: { readonly keys: readonly string[]; readonly hasAnchors: boolean },
): string[] {
  const { checkpoints, anomalies } = result;
  const trusted = trustedKeysIn(file, keys);
  const covered = checkpoints.at(-1)?.atSequence ?? file.fromSeq - 1;
  const unsigned = Math.max(0, file.toSeq - covered);
  const lines = [
    ['Tenant', file.tenant],
    ['Exported', file.exportedAt],
    ['Entries', `${file.fromSeq} to ${file.toSeq}`],
    [
      'Checkpoints',
      `${checkpoints.length}, up to ${covered}${unsigned > 0 ? `; ${unsigned} entries are not signed yet` : ''}`,
    ],
    ...(hasAnchors ? [['Anchored', `${anchored} checkpoints`]] : []),
    ...file.keys.map(({ keyId, publicKey }) => [
      'Key',
      `${keyId}  ${publicKey && spkiOf(publicKey)}${trusted.has(keyId) ? '' : '  not trusted'}`,
    ]),
    ['Result', result.chainValid ? 'valid' : `TAMPERED WITH: ${counted(anomalies.length, 'finding')}`],
  ];
  return [
    ...columns(lines),
    ...findings(anomalies),
    ...(keys.length > 0
      ? []
      : ['', 'Checked with the keys in the file. Use --key to check with a key that you trust.']),
  ];
}

function findings(anomalies: readonly Anomaly[]): string[] {
  if (anomalies.length === 0) return [];
  const rows = anomalies
    .slice(0, FINDINGS_SHOWN)
    .map((anomaly) => [String(anomaly.atSeq), anomaly.kind, detailOf(anomaly)]);
  const more = anomalies.length - rows.length;
  return ['', ...table(['AT', 'WHAT', 'DETAIL'], rows), ...(more > 0 ? [`and ${more} more`] : [])];
}

function detailOf(anomaly: Anomaly): string {
  if (anomaly.kind === 'chain-break')
    return `previous hash is ${anomaly.actualPrevHash}, expected ${anomaly.expectedPrevHash}`;
  const checkpoint = 'checkpoint' in anomaly ? [anomaly.checkpoint] : [];
  return [...checkpoint, ...(anomaly.detail === undefined ? [] : [anomaly.detail])].join(': ');
}
