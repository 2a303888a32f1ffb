import { OUTPUT_LIMITS } from '../engine/limits/output-limits.ts';
import { isLoopbackName, reachOf } from '../system/addresses.ts';
import { parseEgressRule } from '../system/egress-allow.ts';
import { defineSettings } from './settings.ts';

const DAY_MS = 24 * 60 * 60_000;
const SECRET_CHARACTERS_MIN = 32;
/** What a run can be allowed to hold. */
const SIZES = { min: 1_024, max: 536_870_912 };

/** Settings of the host as a whole that several capabilities depend on. */
export const hostSettings = defineSettings({
  variables: {
    publicUrl: {
      variable: 'CAPSTAN_PUBLIC_URL',
      flag: '--public-url <url>',
      meaning: 'public origin for absolute URLs',
    },
    conformance: {
      variable: 'CAPSTAN_CONFORMANCE',
      flag: '--conformance',
      meaning: 'enable the conformance fixtures, mock providers, and defaults that suites need; never in production',
    },
    loopback: {
      variable: 'CAPSTAN_LOOPBACK',
      flag: '--no-loopback',
      meaning: 'forbid webhooks to this machine even with --conformance (CAPSTAN_LOOPBACK=0)',
    },
    dev: {
      variable: 'CAPSTAN_DEV',
      flag: '--dev',
      meaning:
        'for development: requests may go to this machine, a scripted model answers if none is configured, no drain; never in production',
    },
    egressAllow: {
      variable: 'CAPSTAN_EGRESS_ALLOW',
      meaning:
        'private addresses that requests of workflows and webhooks may reach: [scheme://]host[:port], separated by commas; a host is a name, *.name, an address or a CIDR',
    },
    maxNodeExecutions: {
      variable: 'CAPSTAN_MAX_NODE_EXECUTIONS',
      meaning: 'limit of node executions for each run (10000)',
    },
    maxRunDurationMs: {
      variable: 'CAPSTAN_MAX_RUN_DURATION_MS',
      meaning: 'limit of the duration of a run, including waits (30 days)',
    },
    maxOutputCharacters: {
      variable: 'CAPSTAN_MAX_OUTPUT_CHARACTERS',
      meaning: 'limit of the outputs of one node, as JSON text (2097152)',
    },
    maxVariableCharacters: {
      variable: 'CAPSTAN_MAX_VARIABLE_CHARACTERS',
      meaning: 'limit of the value of a variable and of a write to a channel, as JSON text (2097152)',
    },
    maxStateCharacters: {
      variable: 'CAPSTAN_MAX_STATE_CHARACTERS',
      meaning: 'limit of all outputs, variables and channels of a run, as JSON text (8388608)',
    },
    maxLogCharacters: {
      variable: 'CAPSTAN_MAX_LOG_CHARACTERS',
      meaning: 'limit of all events of a run, as JSON text (33554432)',
    },
    maxRequestBodyBytes: { variable: 'CAPSTAN_MAX_BODY_BYTES', meaning: 'limit of the request body (1048576)' },
    secret: {
      variable: 'CAPSTAN_SECRET',
      meaning: 'encryption key for stored secrets, at least 32 characters, the same on all hosts (a key in the store)',
    },
  },
  read: (read) => {
    const conformance = read.boolean('conformance');
    const loopback = read.boolean('loopback', true);
    if (conformance && read.environment.NODE_ENV === 'production') {
      read.report('conformance', ' opens test endpoints and is not allowed with NODE_ENV=production.');
    }
    const isDev = read.boolean('dev');
    if (isDev && read.environment.NODE_ENV === 'production') {
      read.report('dev', ' lets requests reach this machine and is not allowed with NODE_ENV=production.');
    }
    return {
      /** Whether somebody is developing a project on this host. */
      isDev,
      /** Origin under which callers reach the host, if the operator says so. */
      publicUrl: read.url('publicUrl', ['http:', 'https:'])?.replace(/\/+$/, ''),
      conformance,
      /** Whether the tenants of configured keys get sample data, as conformance suites expect. */
      samples: conformance,
      /** Whether outgoing requests may go to this machine, over plain http too. */
      allowLoopback: (conformance || isDev) && loopback,
      /** What outgoing requests may reach on purpose, though it is not public. */
      egressAllow: read
        .list('egressAllow', (text) =>
          parseEgressRule(text)
            ? undefined
            : ' must be [scheme://]host[:port], as http://localhost:8080 or 10.0.0.0/8, separated by commas.',
        )
        .flatMap((text) => parseEgressRule(text) ?? []),
      maxNodeExecutions: read.integer('maxNodeExecutions', { otherwise: 10_000, min: 1, max: 10_000_000 }),
      maxRunDurationMs: read.integer('maxRunDurationMs', { otherwise: 30 * DAY_MS, min: 1_000, max: 3_650 * DAY_MS }),
      /** How much each run may hold. */
      outputLimits: {
        output: read.integer('maxOutputCharacters', { otherwise: OUTPUT_LIMITS.output, ...SIZES }),
        variable: read.integer('maxVariableCharacters', { otherwise: OUTPUT_LIMITS.variable, ...SIZES }),
        state: read.integer('maxStateCharacters', { otherwise: OUTPUT_LIMITS.state, ...SIZES }),
        log: read.integer('maxLogCharacters', { otherwise: OUTPUT_LIMITS.log, ...SIZES }),
      },
      maxRequestBodyBytes: read.integer('maxRequestBodyBytes', {
        otherwise: 1_048_576,
        min: 1_024,
        max: 104_857_600,
      }),
      /** Seals secrets at rest; without it a key from the store does. */
      secret: read.textOfLength('secret', SECRET_CHARACTERS_MIN),
    };
  },
});

/** Whether a host that listens on this address is reached by this machine alone. */
export function isForThisMachine(address: string): boolean {
  return isLoopbackName(address) || reachOf(address) === 'loopback';
}
