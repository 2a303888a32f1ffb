import type { RunEvent } from '../../src/protocol/running/events.ts';
import type { SeamDrivers } from '../../src/runtime/effects/seams.ts';
import {
  type CallableTool,
  fixedTools,
  type ToolSource,
  toolFacts,
  type WorkflowTool,
} from '../../src/runtime/tools.ts';
import type { World } from './world.ts';

/** What agents have in a simulated world: a model that thinks aloud, a tool that touches the world, and one that is a workflow. */
export interface SimAgents {
  readonly model: SeamDrivers['model'];
  readonly agent: SeamDrivers['agent'];
  readonly tools: readonly ToolSource[];
}

const TOUCH = 'sim:touch';
const CHILD = 'sim:child';

export function simAgents(
  world: World,
  isStorm: () => boolean,
  touch: (effectId: string) => Promise<unknown>,
): SimAgents {
  const facts = {
    description: '',
    inputSchema: { type: 'object' },
    transport: 'native',
    safetyTier: 'write',
    egress: 'none',
    replayPolicy: 'idempotent',
  } as const;
  const touching: CallableTool = { ...facts, name: TOUCH, call: (_args, { effectId }) => touch(effectId) };
  const child: WorkflowTool = { ...facts, name: CHILD, workflowId: 'child' };
  const tools = [touching, child];
  /** One step after the other: how many answers of its own it is shown says which is next. */
  const steps = [asks(TOUCH), asks(CHILD), asks(TOUCH), says({ decision: 'done', confidence: 1 })];
  return {
    model: async ({ messages = [] }) => {
      const { random } = world;
      await world.sleep(random.between(0, 800));
      if (isStorm() && random.chance(0.1)) throw new Error('the model is not to be reached');
      return steps[messages.filter(({ role }) => role === 'assistant').length]!;
    },
    agent: async () => ({ agent: null, allowed: tools.map(({ name }) => name), tools: tools.map(toolFacts) }),
    tools: [fixedTools('sim', tools)],
  };
}

type Said = Awaited<ReturnType<SeamDrivers['model']>>;

function asks(tool: string): Said {
  const toolCalls = [{ id: tool, name: tool.replace(':', '_'), arguments: {} }];
  return { chunks: [{ text: 'Let me see.', delayMs: 0, meta: { finishReason: 'tool_calls', toolCalls } }] };
}

function says(value: object): Said {
  return { chunks: [{ text: JSON.stringify(value), delayMs: 0, meta: { finishReason: 'stop' } }] };
}

/** The log has every step of an agent once, in whichever order hosts have died. */
export function problemsWithAgents(events: readonly RunEvent[]): string[] {
  const steps = events
    .filter(
      ({ type, payload }) =>
        /^agent\.(?!reasoned)/.test(type) && (payload as { outcome?: string }).outcome !== 'failed',
    )
    .map(({ type, payload }) => `${type} ${(payload as { callId?: string }).callId ?? ''}`);
  const twice = steps.filter((step, index) => steps.indexOf(step) !== index);
  const returned = steps.filter((step) => step.startsWith('agent.toolReturned')).length;
  const called = steps.filter((step) => step.startsWith('agent.toolCalled')).length;
  return [
    ...twice.map((step) => `an agent did twice: ${step}`),
    ...(called < returned || called > returned + 1 ? [`${returned} returns of ${called} calls`] : []),
  ];
}
