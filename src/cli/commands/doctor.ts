import { isShown, RefusedError } from '../../client/index.ts';
import { VERSION } from '../../version.ts';
import type { CommandSpec } from '../command.ts';
import { credentialsPath, currentLogin, type Login, readersOfCredentials } from '../credentials.ts';
import { EXIT } from '../exit.ts';
import type { Terminal } from '../terminal.ts';
import { checkKey } from './login.ts';

interface Finding {
  readonly what: string;
  readonly isGood: boolean;
  readonly detail: string;
}

/** Names for people, and where the discovery document shows that a host supports each. */
const FAMILIES: Readonly<Record<string, string>> = {
  'pause and resume': 'runs.pauseResume.supported',
  'replay and fork': 'replay.supported',
  feedback: 'feedback.supported',
  webhooks: 'webhooks.supported',
  schedules: 'scheduling.supported',
  heartbeats: 'heartbeat.supported',
  agents: 'agents.manifestRuntime.supported',
  models: 'aiProviders.supported',
  proposals: 'agents.proposals',
  goals: 'agents.goals',
  commitments: 'agents.commitments.supported',
  memory: 'memory.supported',
  MCP: 'mcp.serverMount.supported',
  prompts: 'prompts.endpointsSupported',
  'debug bundles': 'debugBundle.supported',
  'audit log integrity': 'auth.auditLogIntegrity',
};

/** `capstan doctor`; exits with 1 when a check fails. */
export const doctor: CommandSpec = {
  name: 'doctor',
  summary: 'Check the connection, the key and what the host supports',
  example: 'doctor',
  json: 'result',
  async run(context) {
    const { terminal, paint } = context;
    const login = await currentLogin(terminal.environment);
    const discovery = await (await context.client()).getCapabilities();
    const served = Object.keys(FAMILIES).filter((name) => isShown(discovery, FAMILIES[name]!));
    const { name = 'unknown', version = '' } = (discovery.implementation ?? {}) as { name?: string; version?: string };
    const findings: Finding[] = [
      { what: 'host', isGood: true, detail: `${name} ${version} at ${login.url}` },
      protocolFinding(discovery.protocolVersion),
      await keyFinding(login),
      await fileFinding(terminal),
    ];
    const isGood = findings.every((finding) => finding.isGood);
    context.show({ url: login.url, isGood, findings, served }, () => [
      ...findings.map(
        ({ what, isGood, detail }) =>
          `${isGood ? paint('green', 'ok ') : paint('red', 'BAD')}  ${what.padEnd(10)} ${detail}`,
      ),
      `     supports   ${served.join(', ')}`,
      `     client     capstan ${VERSION}, Node ${process.versions.node}`,
    ]);
    return isGood ? EXIT.done : EXIT.refused;
  },
};

function protocolFinding(version: unknown): Finding {
  const isGood = typeof version === 'string' && version.startsWith('1.');
  return { what: 'protocol', isGood, detail: isGood ? `OpenWOP ${version}` : 'not OpenWOP 1, which this client needs' };
}

async function keyFinding({ url, key, source }: Login): Promise<Finding> {
  if (key === undefined) {
    return { what: 'key', isGood: false, detail: 'none found: run `capstan login` or set CAPSTAN_KEY' };
  }
  try {
    await checkKey(url, key);
    return { what: 'key', isGood: true, detail: `from ${source}, accepted by the host` };
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return {
      what: 'key',
      isGood: false,
      detail: `from ${source}, not accepted by the host: it is unknown, revoked or has expired`,
    };
  }
}

async function fileFinding({ environment }: Terminal): Promise<Finding> {
  const path = credentialsPath(environment);
  const readers = await readersOfCredentials(environment);
  if (readers === 'no file')
    return { what: 'file', isGood: true, detail: `none at ${path}; \`capstan login\` makes it` };
  if (readers === 'owner') return { what: 'file', isGood: true, detail: path };
  return { what: 'file', isGood: false, detail: `other users can read ${path}; run: chmod 600 ${path}` };
}
