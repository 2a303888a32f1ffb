import type { Scenario } from '../scenario.ts';
import { documents } from './documents.ts';
import { examples, mcpTool, triage } from './examples.ts';
import { fixtures } from './fixtures.ts';
import { goals } from './goals.ts';
import { help, helpOfCommands } from './help.ts';
import { libraries } from './libraries.ts';
import { commands, flows, idempotency } from './lifecycle.ts';
import { mcp } from './mcp.ts';
import { operations } from './operations.ts';
import { proposals } from './proposals.ts';
import { seams } from './seams.ts';
import { selfStarting } from './self-starting.ts';
import { webhooks } from './webhooks.ts';

/** Every scenario, in the order in which they are played on one host. */
export const SCENARIOS: readonly Scenario[] = [
  documents,
  help,
  helpOfCommands,
  ...examples,
  triage,
  mcpTool,
  proposals,
  flows,
  commands,
  idempotency,
  goals,
  selfStarting,
  fixtures,
  seams,
  webhooks,
  mcp,
  libraries,
  operations,
];
