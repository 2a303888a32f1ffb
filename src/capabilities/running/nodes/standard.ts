import type { NodeType } from '../../../runtime/node-type.ts';
import { ARRAY_NODES } from './arrays.ts';
import { end, fail, getVariable, identity, noop, setVariable, start } from './basic.ts';
import { channelWrite } from './channel-write.ts';
import { delay, wait } from './delay.ts';
import { EXPRESSION_NODES } from './expressions.ts';
import { FLOW_NODES } from './flow.ts';
import { forEach } from './for-each.ts';
import { idempotencyKey } from './idempotency-key.ts';
import { stringFormat } from './string-format.ts';
import { subWorkflow } from './sub-workflow.ts';
import { TEXT_NODES } from './texts.ts';

/** The standard node types, which every tenant may use. */
export const NODES: readonly NodeType[] = [
  start,
  end,
  noop,
  identity,
  fail,
  delay,
  wait,
  setVariable,
  getVariable,
  channelWrite,
  subWorkflow,
  forEach,
  ...FLOW_NODES,
  ...ARRAY_NODES,
  ...EXPRESSION_NODES,
  ...TEXT_NODES,
  stringFormat,
  idempotencyKey,
];
