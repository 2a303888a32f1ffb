import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLoopbackName, isPrivateName, reachOf } from './addresses.ts';

describe('an address', () => {
  it.each(['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:0:0:1'])(
    'like %s leads to this machine',
    (address) => {
      expect(reachOf(address)).toBe('loopback');
    },
  );

  it.each([
    '1.1.1.1',
    '9.255.255.255',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '223.255.255.255',
    '::ffff:1.1.1.1',
    '64:ff9b::1.1.1.1',
    '2002:101:101::1',
    '2606:4700:4700::1111',
    '2a00:1450:4001::1',
  ])('like %s is public', (address) => {
    expect(reachOf(address)).toBe('public');
  });

  it.each([
    ['this network', '0.0.0.0'],
    ['this network', '0.1.2.3'],
    ['private', '10.0.0.1'],
    ['private', '172.16.0.1'],
    ['private', '172.31.255.255'],
    ['private', '192.168.1.1'],
    ['shared by a carrier', '100.64.0.1'],
    ['shared by a carrier', '100.100.100.200'],
    ['metadata', '169.254.169.254'],
    ['metadata', '168.63.129.16'],
    ['metadata', 'fd00:ec2::254'],
    ['link-local', '169.254.0.1'],
    ['link-local', 'fe80::1'],
    ['link-local', 'fe80::1%eth0'],
    ['link-local', 'febf::1'],
    ['unique local', 'fc00::1'],
    ['unique local', 'fdff::1'],
    ['site-local', 'fec0::1'],
    ['multicast', '224.0.0.1'],
    ['multicast', 'ff02::1'],
    ['reserved', '240.0.0.1'],
    ['broadcast', '255.255.255.255'],
    ['benchmarks', '198.18.0.1'],
    ['documentation', '192.0.2.1'],
    ['documentation', '198.51.100.1'],
    ['documentation', '203.0.113.1'],
    ['documentation', '2001:db8::1'],
    ['documentation', '3fff::1'],
    ['protocol assignments', '192.0.0.192'],
    ['unspecified', '::'],
    ['discard', '100::1'],
    ['Teredo', '2001::1'],
    ['mapped', '::ffff:10.0.0.1'],
    ['mapped', '::ffff:a9fe:a9fe'],
    ['mapped', '0:0:0:0:0:ffff:c0a8:101'],
    ['compatible', '::127.0.0.1'],
    ['compatible', '::1.1.1.1'],
    ['translated', '64:ff9b::127.0.0.1'],
    ['translated', '64:ff9b::a9fe:a9fe'],
    ['translated here', '64:ff9b:1::1'],
    ['tunnelled', '2002:7f00:1::1'],
    ['tunnelled', '2002:a00:1::'],
    ['no address', 'example.com'],
    ['no address', ''],
    ['no address', '1.1.1'],
  ])('that is %s, like %s, is private', (_kind, address) => {
    expect(reachOf(address)).toBe('private');
  });

  it('is classified alike in IPv4 and mapped into IPv6', () => {
    const byte = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.tuple(byte, byte, byte, byte), (bytes) => {
        const address = bytes.join('.');
        const hex = bytes.map((each) => each.toString(16).padStart(2, '0'));
        expect(reachOf(`::ffff:${address}`)).toBe(reachOf(address));
        expect(reachOf(`0:0::FFFF:${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`)).toBe(reachOf(address));
        expect(reachOf(`64:ff9b::${address}`) === 'public').toBe(reachOf(address) === 'public');
        expect(reachOf(`2002:${hex[0]}${hex[1]}:${hex[2]}${hex[3]}::1`) === 'public').toBe(
          reachOf(address) === 'public',
        );
      }),
    );
  });
});

describe('a name', () => {
  it.each(['localhost', 'metadata', 'redis', 'a.localhost', 'printer.local', 'metadata.google.internal', 'db.cluster'])(
    'like %s means something only inside',
    (name) => {
      expect(isPrivateName(name)).toBe(true);
    },
  );

  it.each(['example.com', 'localhost.example.com', 'internal.example.com', 'notlocal.example'])(
    'like %s may mean something everywhere',
    (name) => {
      expect(isPrivateName(name)).toBe(false);
    },
  );

  it('means this machine if it is localhost or a subdomain of it', () => {
    expect(['localhost', 'hooks.localhost', 'localhost.example.com', 'notlocalhost'].map(isLoopbackName)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
