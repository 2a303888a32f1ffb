import type { CommandGroup, CommandSpec } from '../command.ts';
import { agents } from './agents.ts';
import { audit } from './audit.ts';
import { backup, verify } from './backup.ts';
import { commitments } from './commitments.ts';
import { completionOf } from './completion.ts';
import { dev } from './dev.ts';
import { doctor } from './doctor.ts';
import { events } from './events.ts';
import { feedback } from './feedback.ts';
import { goals } from './goals.ts';
import { heartbeats } from './heartbeats.ts';
import { init } from './init.ts';
import { inbox, interrupts } from './interrupts.ts';
import { keys } from './keys.ts';
import { login, logout } from './login.ts';
import { memory } from './memory.ts';
import { packs } from './packs.ts';
import { prompts } from './prompts.ts';
import { proposals } from './proposals.ts';
import { runs } from './runs.ts';
import { schedules } from './schedules.ts';
import { test } from './test.ts';
import { tools } from './tools.ts';
import { triggers } from './triggers.ts';
import { upgrade } from './upgrade.ts';
import { verifiers } from './verifiers.ts';
import { webhooks } from './webhooks.ts';
import { worker } from './worker.ts';
import { workers } from './workers.ts';
import { workflows } from './workflows.ts';

/** All command groups, in the order of the help. */
export const GROUPS: readonly CommandGroup[] = [
  runs,
  workflows,
  interrupts,
  feedback,
  proposals,
  goals,
  verifiers,
  schedules,
  triggers,
  heartbeats,
  commitments,
  prompts,
  packs,
  agents,
  tools,
  memory,
  workers,
  webhooks,
  keys,
  audit,
  upgrade,
];

const SINGLE: readonly CommandSpec[] = [init, dev, test, worker, login, logout, doctor, events, inbox, backup, verify];

/** All commands that belong to no group; `serve` is added separately, because it loads the host. */
export const COMMANDS: readonly CommandSpec[] = [...SINGLE, completionOf(GROUPS, SINGLE)];
