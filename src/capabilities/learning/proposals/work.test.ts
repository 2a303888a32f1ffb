import { afterAll, expect, it } from 'vitest';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { OUTDATED, unchanged } from '../../../runtime/change.ts';
import { TemporaryFailure } from '../../../system/temporary-failure.ts';
import type { Activation } from './activation.ts';
import { gateTimeoutHandler } from './work.ts';

const { host, close } = await openServiceHost({ tables: [] });
afterAll(close);

const item = {
  work_id: 'item',
  kind: 'gate',
  tenant: 't',
  payload: 'run-1',
  epoch: 1,
  wakes: 0,
  crashes: 0,
  strikes: 0,
};
const handling = (expireGate: Activation['expireGate']) => gateTimeoutHandler(host.runtime, { expireGate })(item);

it('is due again when the run has a later gate', async () => {
  expect(await handling(async () => unchanged(7))).toEqual({ dueAgainAt: 7 });
  expect(await handling(async () => unchanged(undefined))).toEqual({ dueAgainAt: undefined });
});

it('ends when there is no gate any more', async () => {
  expect(await handling(async () => NOT_FOUND)).toEqual({});
});

it('is tried again later when others keep changing the proposal', async () => {
  await expect(handling(async () => OUTDATED)).rejects.toThrow(TemporaryFailure);
});
