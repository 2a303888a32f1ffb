import { own } from '../protocol/format/json.ts';
import { UsageError } from './exit.ts';

/** A kind of resource that an argument names: the word for it, and the command that lists them. */
type Kind = readonly [word: string, list: string];

const RUN: Kind = ['run', 'runs list'];

/** The kinds of resources, by the names that arguments have in the help. */
const KINDS: Readonly<Record<string, Kind>> = {
  runId: RUN,
  runIds: RUN,
  otherRunId: RUN,
  workflowId: ['workflow', 'workflows list'],
  artifactId: ['artifact', 'runs artifacts <runId>'],
  id: ['run or open interrupt', 'approvals list'],
  proposalId: ['proposal', 'proposals list'],
  ref: ['installed artifact', 'proposals installed'],
  goalId: ['goal', 'goals list'],
  verifierId: ['verifier', 'verifiers list'],
  scheduleId: ['schedule', 'schedules list'],
  triggerId: ['trigger', 'triggers list'],
  heartbeatId: ['heartbeat', 'heartbeats list'],
  commitmentId: ['commitment', 'commitments list'],
  templateId: ['prompt template', 'prompts list'],
  name: ['pack', 'packs list'],
  chainId: ['chain', 'packs list'],
  agentId: ['agent', 'agents list'],
  toolId: ['tool', 'tools list'],
  memoryId: ['memory', 'memory list'],
  webhookId: ['webhook', 'webhooks list'],
  deliveryId: ['delivery', 'webhooks deliveries <webhookId>'],
  keyId: ['key', 'keys list'],
};

/** A resource that an argument of a command names by its id. */
export interface ResourceArgument {
  readonly word: string;
  readonly id: string;
  readonly list: string;
}

/**
 * The resources that the arguments of a command name; `takes` is for example `<runId> [artifactId]`. An empty argument,
 * such as a shell makes from a variable that is not set, names none and is refused.
 */
export function resourceArguments(takes: string, args: readonly string[]): ResourceArgument[] {
  const names = takes.split(' ').map((argument) => argument.replace(/[<>[\].]/g, ''));
  const more = takes.includes('...') ? names.at(-1) : undefined;
  return args.flatMap((id, index) => {
    const name = names[index] ?? more ?? '';
    const kind = own(KINDS, name);
    if (kind && id === '') throw new UsageError(`${name} is empty. \`capstan ${kind[1]}\` lists what there is.`);
    return kind ? [{ word: kind[0], id, list: kind[1] }] : [];
  });
}

/** Says that no resource has these ids, or that the caller may not see it. */
export function missingText(resources: readonly ResourceArgument[]): string {
  const none = resources.map(({ word, id }) => `no ${word} ${id}`).join(', or ');
  return `There is ${none}, or you may not see it.`;
}
