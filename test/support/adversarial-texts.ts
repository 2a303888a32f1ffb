/** Texts that would make a careless pattern take quadratic time or worse. */

/** A key of a well-known shape, to be found whatever stands before it. */
export const SECRET_AT_THE_END = `sk-${'a1B2'.repeat(5)}`;
/** At the end of a text this triggers every pattern, however harmless the text is otherwise. */
export const EVERY_CLUE = ` ${SECRET_AT_THE_END} AIza${'a1B2'.repeat(9).slice(1)} eyJaaaa.eyJaaaa. -----BEGIN x ://u:p@h Bearer x --password x authorization: x secret:\n x "secret", password=x1 ?sig=`;

/** Repeated, each of these makes some pattern restart often, or run far and then fail. */
export const ADVERSARIAL_UNITS: readonly string[] = [
  ...['a', '-', '.', '=', ':', '/', '\\', '"', ' ', '\n', '0', '@', '{', '[', 'a:', 'a-', 'a.', 'a@', 'a '],
  ...['eyJ', '-eyJ', 'eyJ.', '.eyJ', '-eyJa.', 'eyJaaaaaaaaaaaaaaaaaaaaaaaa.'],
  ...[
    '-----BEGIN',
    '-----BEGIN PRIVATE KEY-----',
    '-----BEGIN PRIVATE KEY-----\nA',
    '-----BEGIN PRIVATE KEY-----\\n \n',
  ],
  ...['password=', 'password="', '"password":"', 'password: ', '--password ', '--a-', 'api_', 'secret:{{', 'secret="{'],
  ...['--password-', '--secret\t', 'api_key%3D', 'api_key\\u003d', 'password_1', 'password:\n ', 'password:\n a:'],
  ...['secret:[ ', 'secret:{"value": ', '"secret",', '"secret","value":', 'authorization: a ', 'authorization: a-'],
  ...['secret=a.', 'secret="/a', 'secret="\\', 'authorization: bearer ', 'bearer ', 'Basic aaaa', 'pwd>'],
  ...['sk-', '-sk-', 'sk-aaaaaaaaaaaaaaa ', 'AIza', '-AIza', 'AKIA', '12345678:AA', 'SG.aaaaaaaaaaaaaaaa.', 'cred_'],
  ...[
    'Maaaaaaaaaaaaaaaaaaaaaaaa.',
    'Maaaaaaaaaaaaaaaaaaaaaaaa.aaaaaa.',
    '://',
    '://a:',
    '://a:@',
    '?sig=',
    '%3D',
    '\\u0022',
  ],
];

/** Prefixes that start a pattern before the repetition begins. */
export const ADVERSARIAL_OPENINGS: readonly string[] = [
  '-----BEGIN RSA PRIVATE KEY-----\n',
  'password="',
  'password=',
  'password:\n ',
  '"secret","',
  'authorization: x ',
  '--password ',
  'eyJ',
  'postgres://u:',
  'Basic ',
  'sk-',
];
/** What such an opening is followed by, many times. */
export const ADVERSARIAL_FILLERS: readonly string[] = ['a', '1', '-', 'a-', '--a-', 'a.', 'a@', '\\', ' '];
