import { Api } from '../support/api.ts';
import { type Mode, type RunningHost, runCapstan, runNode, startHost } from './checkout.ts';
import { normaliser } from './normalise.ts';
import { ROLES } from './roles.ts';
import type { Scenario, Stage } from './scenario.ts';

/** The normalised documents of one checkout by name, in the order in which they were recorded. */
export type Recording = ReadonlyMap<string, unknown>;

/** Starts a host of a checkout in one mode, plays the scenarios on it and returns what they recorded. */
export async function recordHost(checkout: string, mode: Mode, scenarios: readonly Scenario[]): Promise<Recording> {
  const documents = new Map<string, unknown>();
  const host = await startHost(checkout, mode);
  try {
    for (const scenario of scenarios.filter(({ modes }) => modes.includes(mode))) {
      await playOrFail(scenario, stageOn(host, { checkout, mode, scenario, documents }), (error) => {
        // With the path of the checkout, so that it is reported even if both sides fail alike.
        documents.set(`${mode} / ${scenario.name} / failed`, [checkout, String(error)]);
      });
    }
  } finally {
    documents.set(`${mode} / database schema`, await host.stop());
  }
  return documents;
}

/** A scenario that breaks off is reported as a difference, and the others are still played. */
async function playOrFail(scenario: Scenario, stage: Stage, onError: (error: unknown) => void): Promise<void> {
  try {
    await scenario.play(stage);
  } catch (error) {
    onError(error);
  }
}

interface Play {
  readonly checkout: string;
  readonly mode: Mode;
  readonly scenario: Scenario;
  readonly documents: Map<string, unknown>;
}

function stageOn(host: RunningHost, { checkout, mode, scenario, documents }: Play): Stage {
  const normalise = normaliser({ ...host, checkout });
  return {
    mode,
    as: (role) => new Api(host.url, ROLES[role].key),
    anonymous: new Api(host.url),
    capstan: (args, role) => runCapstan(checkout, args, role && { url: host.url, role }),
    program: (path, role) => runNode(checkout, [path], { url: host.url, role }),
    record: (name, document) => {
      documents.set(unusedName(documents, `${mode} / ${scenario.name} / ${name}`), normalise(document));
    },
  };
}

function unusedName(documents: ReadonlyMap<string, unknown>, name: string): string {
  let count = 1;
  let unused = name;
  while (documents.has(unused)) unused = `${name} (${++count})`;
  return unused;
}
