import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { Anomaly, VerifyResult } from '../../protocol/audit-chain.ts';
import { type IsSignedHex, signatureCheckOf } from '../../system/ed25519.ts';
import { type AuditFile, verifyAuditFile } from '../audit-file.ts';

const EXIT_TAMPERED = 1;
const EXIT_USAGE = 2;
const FINDINGS_SHOWN = 50;

interface Options {
  readonly json?: true;
  readonly key?: string;
}

export function addAudit(program: Command): void {
  const audit = program.command('audit').description('Work with the audit log');
  audit
    .command('verify')
    .description('Check an exported audit log; no host is needed for it')
    .argument('<file>', 'an answer of GET /v1/host/capstan/audit/export')
    .option('--key <key>', 'trust only this public key: base64, or the path of a PEM file (the keys in the file)')
    .option('--json', 'print the result as JSON')
    .action(verify);
}

async function verify(path: string, { key, json }: Options): Promise<void> {
  try {
    const trusted = key === undefined ? undefined : await trustedKey(key);
    const { file, result } = await verifyAuditFile(path, trusted);
    process.stdout.write(json ? `${JSON.stringify(result)}\n` : report(file, result, trusted !== undefined));
    if (!result.chainValid) process.exitCode = EXIT_TAMPERED;
  } catch (error) {
    process.stderr.write(`${path} cannot be verified: ${(error as Error).message}\n`);
    process.exitCode = isUsage(error) ? EXIT_USAGE : EXIT_TAMPERED;
  }
}

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

function report(file: AuditFile, result: VerifyResult, isKeyTrusted: boolean): string {
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
    ...table(lines),
    ...findings(anomalies),
    ...(isKeyTrusted ? [] : ['', 'Checked with the keys in the file. Give --key to check with one that you trust.']),
    '',
  ].join('\n');
}

function findings(anomalies: readonly Anomaly[]): string[] {
  if (anomalies.length === 0) return [];
  const rows = anomalies
    .slice(0, FINDINGS_SHOWN)
    .map((anomaly) => [String(anomaly.atSeq), anomaly.kind, detailOf(anomaly)]);
  const more = anomalies.length - rows.length;
  return ['', ...table([['AT', 'WHAT', 'DETAIL'], ...rows]), ...(more > 0 ? [`and ${more} more`] : [])];
}

function detailOf(anomaly: Anomaly): string {
  if (anomaly.kind === 'chain-break') return `points at ${anomaly.actualPrevHash}, not at ${anomaly.expectedPrevHash}`;
  return 'checkpoint' in anomaly ? anomaly.checkpoint : (anomaly.detail ?? '');
}

/** What stands in a file may be anybody's: it does not get to move the cursor. */
function table(lines: readonly (readonly string[])[]): string[] {
  const rows = lines.map((row) => row.map((cell) => cell.replace(/\p{Cc}/gu, '?')));
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}
