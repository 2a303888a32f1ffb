import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { defined } from '../../protocol/format/json.ts';
import type { Anomaly, VerifyResult } from '../../protocol/trust/audit-chain.ts';
import { type IsSignedHex, signatureCheckOf } from '../../system/ed25519.ts';
import { type AuditFile, verifyAuditFile } from '../audit-file.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { columns, table } from '../text.ts';
import { text, wholeNumber } from '../values.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const FINDINGS_SHOWN = 50;

const verify: CommandSpec = {
  name: 'verify',
  takes: '<file>',
  summary: 'Check an exported audit log; no host is needed for it',
  flags: { '--key <key>': 'trust only this public key: base64, or the path of a PEM file (the keys in the file)' },
  example: 'audit verify audit.json',
  async run(context, { args: [path = ''], options: { key } }) {
    try {
      const trusted = key === undefined ? undefined : await trustedKey(String(key));
      const { file, result } = await verifyAuditFile(path, trusted);
      context.show(result, () => report(file, result, trusted !== undefined));
      return result.chainValid ? EXIT.done : EXIT.refused;
    } catch (error) {
      context.terminal.err(`${path} cannot be verified: ${(error as Error).message}\n`);
      return isUsage(error) ? EXIT.usage : EXIT.refused;
    }
  },
};

const check: CommandSpec = {
  name: 'check',
  summary: 'Have the host walk its audit log and tell whether somebody has tampered with it',
  example: 'audit check',
  async run(context) {
    const result = await (await context.client()).verifyAudit();
    const { chainValid, anomalies } = result;
    context.show(result, () => [
      chainValid ? 'Nothing is wrong.' : `TAMPERED WITH, findings: ${anomalies.length}`,
      'That is what the host says. With `capstan audit export` and `capstan audit verify` you see for yourself.',
    ]);
    return chainValid ? EXIT.done : EXIT.refused;
  },
};

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Who did what, newest first',
  flags: {
    '--actor <principal>': 'what this one did',
    '--action <action>': 'as run.create',
    '--since <time>': 'at this time or later, as 2026-01-31T12:00:00Z',
    '--until <time>': 'before this time',
    ...PAGE_FLAGS,
  },
  example: 'audit list --action key.create',
  async run(context, { options }) {
    const { actor, action, since, until } = options;
    const filter = defined({ actor: text(actor), action: text(action), since: text(since), until: text(until) });
    const page = await (await context.client()).listAudit({ ...filter, ...pageQuery(options) });
    const row = (item: (typeof page.items)[number]) => [
      item.sequence,
      item.at,
      item.actor,
      item.action,
      item.target,
      item.outcome,
    ];
    context.show(
      page,
      () => [...table(['AT', 'TIME', 'WHO', 'WHAT', 'TARGET', 'OUTCOME'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ sequence }) => String(sequence)),
    );
    return EXIT.done;
  },
};

const exportLog: CommandSpec = {
  name: 'export',
  summary: 'The audit log as a file that can be verified without the host',
  flags: {
    '--output <file>': 'write it there; otherwise it is printed',
    '--from <sequence>': 'the first entry',
    '--to <sequence>': 'the last entry',
  },
  example: 'audit export --output audit.json',
  async run(context, { options: { output, from, to } }) {
    const bytes = await (await context.client()).exportAudit({
      ...(from ? { fromSeq: wholeNumber(String(from), '--from') } : {}),
      ...(to ? { toSeq: wholeNumber(String(to), '--to') } : {}),
    });
    if (!output) {
      for await (const piece of bytes.pipeThrough(new TextDecoderStream())) context.terminal.out(piece);
      return EXIT.done;
    }
    await pipeline(bytes, createWriteStream(String(output), { mode: 0o600 }));
    context.note(`Written to ${output}. Check it with: capstan audit verify ${output}`);
    return EXIT.done;
  },
};

export const audit: CommandGroup = {
  name: 'audit',
  summary: 'Read, export and verify the audit log',
  commands: [list, exportLog, verify, check],
};

class BadKey extends Error {
  override readonly name = 'BadKey';
}

async function trustedKey(key: string): Promise<IsSignedHex> {
  const text = key.endsWith('.pem') ? await readFile(key, 'utf8') : key;
  try {
    return signatureCheckOf(text);
  } catch (error) {
    throw new BadKey('--key is not an Ed25519 public key.', { cause: error });
  }
}

/** A file that is not there, or a key that is none: nothing was found out about the log. */
function isUsage(error: unknown): boolean {
  return error instanceof BadKey || typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

function report(file: AuditFile, result: VerifyResult, isKeyTrusted: boolean): string[] {
  const { checkpoints, anomalies } = result;
  const covered = checkpoints.at(-1)?.atSequence ?? file.fromSeq - 1;
  const unsigned = Math.max(0, file.toSeq - covered);
  const lines = [
    ['Tenant', file.tenant],
    ['Exported', file.exportedAt],
    ['Entries', `${file.fromSeq} to ${file.toSeq}`],
    [
      'Checkpoints',
      `${checkpoints.length}, up to ${covered}${unsigned > 0 ? `; ${unsigned} entries not signed for` : ''}`,
    ],
    ...[...file.keys].map(([keyId, pem]) => ['Key', `${keyId}  ${pem.replace(/-----[^-]*-----|\s/g, '')}`]),
    ['Result', result.chainValid ? 'nothing is wrong' : `TAMPERED WITH, findings: ${anomalies.length}`],
  ];
  return [
    ...columns(lines),
    ...findings(anomalies),
    ...(isKeyTrusted ? [] : ['', 'Checked with the keys in the file. Give --key to check with one that you trust.']),
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
  if (anomaly.kind === 'chain-break') return `points at ${anomaly.actualPrevHash}, not at ${anomaly.expectedPrevHash}`;
  return 'checkpoint' in anomaly ? anomaly.checkpoint : (anomaly.detail ?? '');
}
