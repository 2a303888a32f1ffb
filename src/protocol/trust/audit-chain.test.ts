import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonical,
  type Entry,
  isSignedHere,
  type Log,
  makeLog,
  merkleRoot,
  sha256,
} from '../../../test/support/audit-log.ts';
import { ANOMALIES_MAX, ChainVerifier, entryHash, MerkleRoot, type VerifyResult } from './audit-chain.ts';

/**
 * Goal: an intact log is valid, and one that was tampered with is not. Method: a second implementation of the rules
 * generates logs, one place is changed, and the verifier has to find it.
 */

const anyLog: fc.Arbitrary<Log> = fc
  .tuple(
    fc.array(fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.string({ unit: 'grapheme' })), { minLength: 1, maxLength: 24 }),
    fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 6 }),
  )
  .map(([details, sizes]) => makeLog(details.map(tidy), sizes));

/** What JSON can hold: no -0, no undefined. */
function tidy(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

describe('an intact log', () => {
  it('is valid, with all its checkpoints', () => {
    fc.assert(
      fc.property(anyLog, (log) => {
        expect(verified(log)).toEqual({
          fromSeq: 0,
          toSeq: 1_000,
          chainValid: true,
          checkpointsValid: true,
          checkpoints: log.checkpoints,
          anomalies: [],
        });
      }),
    );
  });

  it('is valid in every requested range', () => {
    const log = makeLog(numbers(12), [1, 2, 4, 5]);
    for (let from = 1; from <= 12; from++) {
      for (let to = from; to <= 13; to++) {
        const part = verified(log, { from, to });
        expect(part.anomalies).toEqual([]);
        expect(part.checkpoints.map(({ atSequence }) => atSequence)).toEqual(
          [1, 3, 7, 12].filter((sequence) => sequence >= from && sequence <= to),
        );
      }
    }
  });

  it('hashes entries as canonical JSON, whatever the order of their members', () => {
    const [{ hash, ...entry }] = makeLog([{ z: 'ä', a: [1, { y: 2, x: 1 }] }], []).entries as [Entry];
    const reversed = Object.fromEntries(Object.entries(entry).reverse());
    expect(entryHash(reversed as Entry, sha256)).toBe(hash);
    expect(sha256(canonical(entry))).toBe(hash);
  });
});

describe('a Merkle root', () => {
  it('computed incrementally equals the one computed by levels', () => {
    for (let count = 1; count <= 70; count++) {
      const leaves = numbers(count).map((number) => sha256(String(number)));
      const tree = new MerkleRoot(sha256);
      for (const leaf of leaves) tree.add(leaf);
      expect(tree.root()).toBe(merkleRoot(leaves));
      expect(tree.leaves).toBe(count);
    }
  });

  it('refuses a leaf that is not a hash, and needs at least one', () => {
    const leaf = sha256('x');
    for (const wrong of [leaf.toUpperCase(), leaf.slice(1), `${leaf}0`, '', 'g'.repeat(64)]) {
      expect(() => new MerkleRoot(sha256).add(wrong)).toThrow();
    }
    expect(() => new MerkleRoot(sha256).root()).toThrow();
  });
});

/** One change to a log, and where it has to be found. */
interface Tampering {
  readonly log: Log;
  readonly change: (entries: Entry[], checkpoints: Entry[]) => void;
}

const flippedMember: fc.Arbitrary<Tampering> = anyLog.chain((log) =>
  fc
    .record({
      index: fc.nat(log.entries.length - 1),
      name: fc.constantFrom(...Object.keys(log.entries[0])),
      value: fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.constant(undefined)),
    })
    .filter(({ index, name, value }) => canonical(log.entries[index][name] ?? '') !== canonical(value ?? ''))
    .map(({ index, name, value }) => ({
      log,
      change: (entries) => {
        entries[index] = { ...entries[index], [name]: value };
      },
    })),
);

const movedEntries: fc.Arbitrary<Tampering> = anyLog.chain((log) =>
  fc
    .record({
      from: fc.nat(log.entries.length - 1),
      to: fc.nat(log.entries.length - 1),
      how: fc.constantFrom('swap', 'swap-contents', 'delete', 'double', 'cut'),
    })
    .filter(({ from, to, how }) => !how.startsWith('swap') || from !== to)
    .map(({ from, to, how }) => ({
      log,
      change: (entries) => {
        const [a, b] = [entries[from], entries[to]];
        if (how === 'swap') Object.assign(entries, { [from]: b, [to]: a });
        if (how === 'swap-contents') {
          entries[from] = { ...b, atSequence: a.atSequence };
          entries[to] = { ...a, atSequence: b.atSequence };
        }
        if (how === 'delete') entries.splice(from, 1);
        if (how === 'double') entries.splice(from, 0, a);
        if (how === 'cut') entries.splice(from);
      },
    })),
);

const changedCheckpoint: fc.Arbitrary<Tampering> = anyLog
  .filter(({ checkpoints }) => checkpoints.length > 0)
  .chain((log) =>
    fc
      .record({
        index: fc.nat(log.checkpoints.length - 1),
        name: fc.constantFrom('merkleRoot', 'signature', 'atSequence'),
      })
      .map(({ index, name }) => ({
        log,
        change: (_entries, checkpoints) => {
          const changed = { ...checkpoints[index] };
          if (name === 'atSequence') changed.atSequence += 1;
          else changed[name] = flip(changed[name]);
          checkpoints[index] = changed;
        },
      })),
  );

/** An attacker who knows the rules but not the key: all hashes and the root are recomputed. */
const rewritten: fc.Arbitrary<Tampering> = anyLog
  .filter(({ checkpoints }) => checkpoints.length > 0)
  .chain((log) =>
    fc.nat(log.checkpoints.at(-1)!.atSequence - 1).map((index) => ({
      log,
      change: (entries, checkpoints) => {
        const forged = makeLog(
          entries.map(({ details }, at) => (at === index ? 'forged' : details)),
          [],
        ).entries;
        entries.splice(0, entries.length, ...forged);
        let before = 0;
        for (const [at, checkpoint] of checkpoints.entries()) {
          const leaves = forged.slice(before, checkpoint.atSequence).map(({ hash }: Entry) => hash);
          checkpoints[at] = { ...checkpoint, merkleRoot: merkleRoot(leaves) };
          before = checkpoint.atSequence;
        }
      },
    })),
  );

describe('a log that was tampered with', () => {
  it.each([
    ['a member of an entry', flippedMember],
    ['the order or the number of its entries', movedEntries],
    ['a checkpoint', changedCheckpoint],
    ['everything from one entry on, the roots included', rewritten],
  ] as [string, fc.Arbitrary<Tampering>][])('is invalid: %s', (_what, tampering) => {
    fc.assert(
      fc.property(tampering, ({ log, change }) => {
        const entries = structuredClone(log.entries);
        const checkpoints = structuredClone(log.checkpoints);
        change(entries, checkpoints);
        const result = verified({ entries, checkpoints }, { last: log.entries.length });
        expect(result.chainValid).toBe(false);
        expect(result.anomalies.length).toBeGreaterThan(0);
        for (const anomaly of result.anomalies) expectShape(anomaly);
        expect(result.checkpointsValid).toBe(!result.anomalies.some((anomaly) => 'checkpoint' in anomaly));
      }),
      { numRuns: 200 },
    );
  });

  it('reports an edit by its hash, by the next entry and by the checkpoint', () => {
    const log = makeLog(numbers(5), [3]);
    const edited = changed(log, (entries) => Object.assign(entries[1], { actor: 'mallory' }));
    const { hash: _, ...content } = edited.entries[1];
    expect(verified(edited).anomalies).toEqual([
      { kind: 'hash-mismatch', atSeq: 2 },
      {
        kind: 'chain-break',
        atSeq: 3,
        expectedPrevHash: sha256(canonical(content)),
        actualPrevHash: log.entries[1].hash,
      },
      { kind: 'merkle-mismatch', atSeq: 3, checkpoint: 'cp-3' },
    ]);
  });

  it('reports missing entries, once for each gap', () => {
    const log = makeLog(numbers(9), [9]);
    const gaps = changed(log, (entries) => {
      entries.splice(5, 2);
      entries.splice(2, 1);
    });
    expect(verified(gaps).anomalies).toEqual([
      { kind: 'missing-entry', atSeq: 3, detail: 'one entry is missing' },
      { kind: 'missing-entry', atSeq: 6, detail: '2 entries are missing, up to 7' },
      { kind: 'merkle-mismatch', atSeq: 9, checkpoint: 'cp-9' },
    ]);
  });

  it('reports a log that was truncated after a checkpoint', () => {
    const cut = changed(makeLog(numbers(6), [4, 2]), (entries) => void entries.splice(3));
    expect(verified(cut, { last: 6 }).anomalies).toEqual([
      { kind: 'missing-entry', atSeq: 4, detail: '3 entries are missing, up to 6' },
      { kind: 'merkle-mismatch', atSeq: 4, checkpoint: 'cp-4' },
      { kind: 'merkle-mismatch', atSeq: 6, checkpoint: 'cp-6' },
    ]);
  });

  it('distinguishes a changed root from a changed signature', () => {
    const log = makeLog(numbers(4), [2, 2]);
    const place = { atSeq: 4, checkpoint: 'cp-4' };
    const otherRoot = changed(log, (_entries, checkpoints) =>
      Object.assign(checkpoints[1], { merkleRoot: sha256('x') }),
    );
    expect(verified(otherRoot).anomalies).toEqual([
      { kind: 'merkle-mismatch', ...place },
      { kind: 'signature-invalid', ...place },
    ]);
    const { signature } = log.checkpoints[0]!;
    const otherSignature = changed(log, (_entries, checkpoints) => Object.assign(checkpoints[1], { signature }));
    expect(verified(otherSignature).anomalies).toEqual([{ kind: 'signature-invalid', ...place }]);
  });

  it('reports a first entry with a prevHash, and a later one without', () => {
    const log = makeLog(numbers(2), []);
    const hash = sha256('before the beginning');
    const before = changed(log, (entries) => Object.assign(entries[0], { prevHash: hash }));
    expect(verified(before).anomalies).toContainEqual({
      kind: 'chain-break',
      atSeq: 1,
      expectedPrevHash: null,
      actualPrevHash: hash,
    });
    const loose = changed(log, (entries) => Reflect.deleteProperty(entries[1], 'prevHash'));
    expect(verified(loose).anomalies).toContainEqual({
      kind: 'chain-break',
      atSeq: 2,
      expectedPrevHash: log.entries[0].hash,
      actualPrevHash: '',
    });
  });

  it('reports only anomalies in the requested range', () => {
    const edited = changed(makeLog(numbers(8), [4, 4]), (entries) => Object.assign(entries[1], { actor: 'mallory' }));
    expect(verified(edited, { from: 5, to: 8 }).chainValid).toBe(true);
    expect(verified(edited, { from: 4, to: 8 }).anomalies).toEqual([
      { kind: 'merkle-mismatch', atSeq: 4, checkpoint: 'cp-4' },
    ]);
  });

  it('reports a bounded number of anomalies', () => {
    const log = makeLog(numbers(2 * ANOMALIES_MAX), []);
    const torn = changed(log, (entries) => {
      for (const entry of entries) entry.actor = 'mallory';
    });
    expect(verified(torn, { to: 10_000 }).anomalies).toHaveLength(ANOMALIES_MAX);
  });
});

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function changed(log: Log, change: (entries: Entry[], checkpoints: Entry[]) => unknown): Log {
  const copy = structuredClone(log);
  change(copy.entries, copy.checkpoints);
  return copy;
}

function flip(text: string): string {
  return (text[0] === 'a' ? 'b' : 'a') + text.slice(1);
}

/** Like the host: starts at the checkpoint before the range, with one more entry to verify the first prevHash. */
function verified(log: Log, { from = 0, to = 1_000, last = log.entries.length } = {}): VerifyResult {
  const checkpoints = log.checkpoints.filter(({ atSequence }) => atSequence >= from && atSequence <= to);
  const coveredUpTo = Math.max(0, ...log.checkpoints.map(({ atSequence }) => atSequence).filter((at) => at < from));
  const start = Math.max(1, (checkpoints.length > 0 ? coveredUpTo + 1 : from) - 1);
  const range = { fromSeq: from, toSeq: to, after: start - 1, last: Math.min(last, to), coveredUpTo, checkpoints };
  const verifier = new ChainVerifier(range, { digest: sha256, isSigned: isSignedHere });
  for (const entry of log.entries) {
    const isBefore = entry.atSequence < start;
    if (!isBefore && !(entry.atSequence > to)) verifier.add(entry);
  }
  return verifier.finish();
}

/** The members of each kind of anomaly. */
const SHAPES: Record<string, readonly string[]> = {
  'chain-break': ['actualPrevHash', 'atSeq', 'expectedPrevHash', 'kind'],
  'hash-mismatch': ['atSeq', 'kind'],
  'missing-entry': ['atSeq', 'detail', 'kind'],
  'merkle-mismatch': ['atSeq', 'checkpoint', 'kind'],
  'signature-invalid': ['atSeq', 'checkpoint', 'kind'],
};

function expectShape(anomaly: VerifyResult['anomalies'][number]): void {
  expect(Object.keys(anomaly).sort()).toEqual(SHAPES[anomaly.kind]);
  expect(Number.isSafeInteger(anomaly.atSeq)).toBe(true);
}
