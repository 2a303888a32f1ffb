import { createClient, isShown, RefusedError } from '../../client/index.ts';
import { VERSION } from '../../version.ts';
import type { CommandSpec } from '../command.ts';
import { credentialsPath, currentLogin, isOpenToOthers, type Login } from '../credentials.ts';
import { EXIT } from '../exit.ts';
import type { Terminal } from '../terminal.ts';
import { checkKey } from './login.ts';

interface Finding {
  readonly what: string;
  readonly isGood: boolean;
  readonly detail: string;
}

/** What a person may want to know whether it is there. */
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

export const doctor: CommandSpec = {
  name: 'doctor',
  summary: 'Check the host, the key and what is served',
  example: 'doctor',
  async run(context) {
    const { terminal, paint } = context;
    const login = await currentLogin(terminal.environment);
    const discovery = await createClient(login).getCapabilities();
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
      `     serves     ${served.join(', ')}`,
      `     client     capstan ${VERSION}, Node ${process.versions.node}`,
    ]);
    return isGood ? EXIT.done : EXIT.refused;
  },
};

function protocolFinding(version: unknown): Finding {
  const isGood = typeof version === 'string' && version.startsWith('1.');
  return { what: 'protocol', isGood, detail: isGood ? `OpenWOP ${version}` : 'not OpenWOP 1; this client speaks that' };
}

async function keyFinding({ url, key, source }: Login): Promise<Finding> {
  if (key === undefined) {
    return { what: 'key', isGood: false, detail: 'there is none: use `capstan login`, or set CAPSTAN_KEY' };
  }
  try {
    await checkKey(url, key);
    return { what: 'key', isGood: true, detail: `from ${source}, taken by the host` };
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return { what: 'key', isGood: false, detail: `from ${source}, refused: ${error.message} (${error.code})` };
  }
}

async function fileFinding({ environment }: Terminal): Promise<Finding> {
  const path = credentialsPath(environment);
  if (!(await isOpenToOthers(environment))) return { what: 'file', isGood: true, detail: path };
  return { what: 'file', isGood: false, detail: `others can read ${path}: chmod 600 it` };
}
