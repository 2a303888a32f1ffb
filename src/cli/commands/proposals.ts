import type { Client } from '../../client/index.ts';
import { defined, type JsonObject } from '../../protocol/format/json.ts';
import type { InstalledArtifactSummary, Proposal } from '../../protocol/learning/proposals.ts';
import type { SynthesizeRequest } from '../../protocol/learning/synthesis.ts';
import type { CommandGroup, CommandSpec, Context, Given } from '../command.ts';
import { edited } from '../editor.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { facts, harmless, type Paint, table } from '../text.ts';
import { confirm, jsonObject, text, texts } from '../values.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

/** What is in use is done, what waits for people is waited for, and everything else came to nothing. */
function exitOfProposal({ state }: Pick<Proposal, 'state'>): ExitCode {
  if (state === 'applied') return EXIT.done;
  return state === 'draft' || state === 'revised' ? EXIT.waiting : EXIT.refused;
}

function showProposal(context: Context, proposal: Proposal): ExitCode {
  const { id, kind, state, title, rationale, provenance, duplicateOf, activation, artifact } = proposal;
  context.show(
    proposal,
    () => [
      ...facts({
        proposal: id,
        kind,
        state,
        title,
        rationale,
        runs: provenance.sourceRunIds.join(' ') || undefined,
        duplicateOf: duplicateOf ?? undefined,
        installed: activation?.installedArtifactRef,
      }),
      '',
      ...JSON.stringify(artifact, null, 2).split('\n').map(harmless),
    ],
    () => [id],
  );
  return exitOfProposal(proposal);
}

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'What was learnt and proposed, newest first',
  flags: {
    '--state <state>': 'draft, revised, applied, rejected or archived',
    '--kind <kind>': 'prompt-template, workflow-chain-pack, agent-pack or automation',
    ...PAGE_FLAGS,
  },
  example: 'proposals list --state draft',
  async run(context, { options }) {
    const filter = defined({ state: text(options.state), kind: text(options.kind) });
    const page = await (await context.client()).listProposals({ ...filter, ...pageQuery(options) });
    const { proposals, nextCursor } = page;
    const row = ({ id, kind, state, title }: Proposal) => [id, kind, state, title];
    context.show(
      page,
      () => [
        ...table(['PROPOSAL', 'KIND', 'STATE', 'TITLE'], proposals.map(row)),
        ...morePages({ items: proposals, ...defined({ nextCursor }) }),
      ],
      () => proposals.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<proposalId>',
  summary: 'What is proposed, and why',
  example: 'proposals get prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''] }) {
    return showProposal(context, await (await context.client()).getProposal(proposalId));
  },
};

const diff: CommandSpec = {
  name: 'diff',
  takes: '<proposalId>',
  summary: 'What the last revision changed, and what is known of the effect; with --all, every revision',
  flags: { '--all': 'every revision' },
  example: 'proposals diff prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''], options }) {
    const client = await context.client();
    const evidence = await client.getProposalEvidence(proposalId);
    const { revisions, change, artifactHash, nearest, sources, obstacle } = evidence;
    const shown = options.all === true ? revisions : revisions.slice(-1);
    const titled = (title: string, lines: string): string[] => [
      context.paint('bold', harmless(title)),
      ...lines.split('\n').map((line) => painted(context.paint, line)),
    ];
    context.show(evidence, () => [
      ...shown.flatMap(({ at, by, note, diff: lines }) =>
        titled(`${at}  ${by}${note === undefined ? '' : `  ${note}`}`, lines),
      ),
      ...(change === undefined ? [] : ['', ...titled('Against what it would take the place of', change)]),
      '',
      ...facts({ artifactHash }),
      ...sources.map(({ runId, why }) => harmless(`learnt from ${runId}: ${why}`)),
      ...(obstacle ? [context.paint('yellow', harmless(`cannot be applied as it is: ${obstacle.message}`))] : []),
      ...nearest.map(({ ref, score }) => harmless(`like ${ref}: ${Math.round(score * 100)} %`)),
    ]);
    return exitOfProposal(await client.getProposal(proposalId));
  },
};

function painted(paint: Paint, line: string): string {
  const shown = harmless(line);
  if (line.startsWith('+')) return paint('green', shown);
  return line.startsWith('-') ? paint('red', shown) : shown;
}

const revise: CommandSpec = {
  name: 'revise',
  takes: '<proposalId>',
  summary: 'Change what is proposed, in $EDITOR unless flags say how',
  flags: {
    '--artifact-json <json>': 'what is to be proposed: a JSON object, @file, or -',
    '--title <text>': 'a title',
    '--rationale <text>': 'why',
    '--note <text>': 'what for, for those who look at the history',
  },
  example: 'proposals revise prop-0mw4x2c1h0001 --note "shorter"',
  async run(context, { args: [proposalId = ''], options }) {
    const client = await context.client();
    const said = defined({
      title: text(options.title),
      rationale: text(options.rationale),
      note: text(options.note),
    });
    const json = text(options.artifactJson);
    if (json === undefined && Object.keys(said).length > 0) {
      return showProposal(context, await client.reviseProposal(proposalId, said));
    }
    const artifact =
      json === undefined
        ? await editedArtifact(context, client, proposalId)
        : await jsonObject(context.terminal, json, '--artifact-json');
    return showProposal(context, await client.reviseProposal(proposalId, { artifact, ...said }));
  },
};

async function editedArtifact(context: Context, client: Client, proposalId: string): Promise<JsonObject> {
  const before = `${JSON.stringify((await client.getProposal(proposalId)).artifact, null, 2)}\n`;
  const after = await edited(context.terminal, `${proposalId}.json`, before);
  if (after === before) throw new UsageError('Nothing was changed, and nothing was done.');
  return jsonObject(context.terminal, after, 'What you have written');
}

const apply: CommandSpec = {
  name: 'apply',
  takes: '<proposalId>',
  summary: 'Put what is proposed into use, or ask those who have to agree',
  example: 'proposals apply prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''] }) {
    const client = await context.client();
    const applied = await client.applyProposal(proposalId);
    if ('installedArtifactRef' in applied) {
      const { installedArtifactRef } = applied;
      context.show(
        applied,
        () => [`Applied: ${installedArtifactRef}`],
        () => [installedArtifactRef],
      );
      return EXIT.done;
    }
    context.show(
      applied,
      () => [`Somebody else has to agree first: ${applied.approvalId}`],
      () => [applied.approvalId],
    );
    const { runId, gate } = await client.getProposalEvidence(proposalId);
    if (gate) context.note(`They can do so with: capstan approvals approve ${runId} ${gate.nodeId}`);
    return EXIT.waiting;
  },
};

const reject: CommandSpec = {
  name: 'reject',
  takes: '<proposalId>',
  summary: 'Turn a proposal down; it is not made again for the same reasons',
  flags: { '--note <text>': 'why' },
  example: 'proposals reject prop-0mw4x2c1h0001 --note "we do this by hand on purpose"',
  async run(context, { args: [proposalId = ''], options }) {
    const reason = text(options.note);
    return showProposal(context, await (await context.client()).rejectProposal(proposalId, defined({ reason })));
  },
};

const archive: CommandSpec = {
  name: 'archive',
  takes: '<proposalId>',
  summary: 'Put a proposal away for good',
  flags: { '--yes': 'do not ask' },
  example: 'proposals archive prop-0mw4x2c1h0001 --yes',
  async run(context, { args: [proposalId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Put ${proposalId} away for good?`);
    return showProposal(context, await (await context.client()).archiveProposal(proposalId));
  },
};

const synthesize: CommandSpec = {
  name: 'synthesize',
  summary: 'Look at what has been done lately, and draft what could be made of it',
  flags: {
    '--kind <kind...>': 'what may be drafted; everything',
    '--run <runId...>': 'look at these runs alone',
    '--since <time>': 'look at runs started from then on',
  },
  example: 'proposals synthesize --kind automation',
  async run(context, { options }) {
    const reply = await (await context.client()).synthesizeProposals(lookingAt(options));
    const { created, scannedRuns } = reply;
    context.show(
      reply,
      () => [
        ...(created.length === 0
          ? []
          : table(
              ['PROPOSAL', 'KIND', 'TITLE'],
              created.map((each) => [each.id, each.kind, each.title]),
            )),
        `${created.length} drafted from ${scannedRuns} runs that had not been looked at.`,
      ],
      () => created.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

function lookingAt({ kind, run, since }: Given['options']): SynthesizeRequest {
  const [kinds, sourceRunIds] = [texts(kind), texts(run)];
  return {
    ...(kinds.length > 0 ? { kinds: [...kinds] as NonNullable<SynthesizeRequest['kinds']> } : {}),
    ...(sourceRunIds.length > 0 ? { sourceRunIds: [...sourceRunIds] } : {}),
    ...defined({ since: text(since) }),
  };
}

const installed: CommandSpec = {
  name: 'installed',
  summary: 'What applied proposals have put into use',
  flags: PAGE_FLAGS,
  example: 'proposals installed',
  async run(context, { options }) {
    const page = await (await context.client()).listInstalledArtifacts(pageQuery(options));
    const row = ({ ref, kind, proposalId, installedBy, replaces }: InstalledArtifactSummary) => [
      ref,
      kind,
      proposalId,
      installedBy,
      replaces,
    ];
    context.show(
      page,
      () => [...table(['ARTIFACT', 'KIND', 'PROPOSAL', 'BY', 'REPLACES'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ ref }) => ref),
    );
    return EXIT.done;
  },
};

const uninstall: CommandSpec = {
  name: 'uninstall',
  takes: '<ref>',
  summary: 'Take back what a proposal has put into use; what was there before is there again',
  flags: { '--yes': 'do not ask' },
  example: 'proposals uninstall art-0mw4x2c1h0001 --yes',
  async run(context, { args: [ref = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Take ${ref} back?`);
    await (await context.client()).uninstallArtifact(ref);
    context.show(undefined, () => [`${ref} is taken back.`]);
    return EXIT.done;
  },
};

export const proposals: CommandGroup = {
  name: 'proposals',
  summary: 'Look at what agents have learnt, and decide on it',
  commands: [list, get, diff, revise, apply, reject, archive, synthesize, installed, uninstall],
};
