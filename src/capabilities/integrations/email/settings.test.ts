import { describe, expect, it } from 'vitest';
import { readMail } from './settings.ts';

describe('the mail server of the operator', () => {
  it.each([
    ['smtps://a%40b:p%2Fw@mail.example', { host: 'mail.example', port: 465, isSecure: true }],
    ['smtp://mail.example', { host: 'mail.example', port: 587, isSecure: false, login: undefined }],
    ['smtp://[::1]:2525', { host: '::1', port: 2_525 }],
  ])('is read from %s', (url, settings) => {
    expect(readMail(url, 'Alerts@Example.com, @reports.example').mail).toMatchObject({
      ...settings,
      senders: ['alerts@example.com', '@reports.example'],
    });
  });

  it('has a login that may have any characters', () => {
    expect(readMail('smtps://a%40b:p%2Fw@mail.example', '@a.example').mail?.login).toEqual({
      user: 'a@b',
      password: 'p/w',
    });
  });

  it.each([
    ['http://mail.example', '@a.example', 'url'],
    ['mail.example', '@a.example', 'url'],
    [undefined, '@a.example', 'url'],
    ['smtp://mail.example', undefined, 'senders'],
    ['smtp://mail.example', 'everybody', 'senders'],
    ['smtp://mail.example', 'Ann <ann@a.example>', 'senders'],
  ])('is not taken from %s and %s', (url, senders, problem) => {
    expect(readMail(url, senders)).toEqual({ problem });
  });

  it('need not be there', () => {
    expect(readMail(undefined, undefined)).toEqual({});
  });
});
