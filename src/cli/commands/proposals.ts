import { type Client, isCapstan } from '../../client/index.ts';
import { defined, type JsonObject } from '../../protocol/format/json.ts';
import type { ImpactedUse } from '../../protocol/learning/impact.ts';
import type { InstalledArtifactSummary, Proposal, ProposalEvidence } from '../../protocol/learning/proposals.ts';
import type { SynthesizeRequest } from '../../protocol/learning/synthesis.ts';
import type { CommandGroup, CommandInput, CommandSpec, Context } from '../command.ts';
import { editText } from '../editor.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { PrincipalNames } from '../principal-names.ts';
import { colourDiffLine, reviewArtifact } from '../reviewed-artifact.ts';
import { counted, propertyLines, sanitize, table } from '../text.ts';
import { confirm, listOption, parseJsonObject, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { effect, preview, previews } from './previews.ts';

/** The exit code for a proposal: success when applied, waiting while undecided, failure otherwise. */
function exitOfProposal({ state }: Pick<Proposal, 'state'>): ExitCode {
  if (state === 'applied') return EXIT.done;
  return state === 'draft' || state === 'revised' ? EXIT.waiting : EXIT.refused;
}

function showProposal(context: Context, proposal: Proposal): ExitCode {
  const { id, kind, state, title, rationale, provenance, duplicateOf, activation, artifact } = proposal;
  context.show(
    proposal,
    () => [
      ...propertyLines({
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
      ...JSON.stringify(artifact, null, 2).split('\n').map(sanitize),
    ],
    () => [id],
  );
  return exitOfProposal(proposal);
}

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List proposals, newest first',
  flags: {
    '--state <state>': 'draft, revised, applied, rejected or archived',
    '--kind <kind>': 'prompt-template, workflow-chain-pack, agent-pack or automation',
    ...PAGE_FLAGS,
  },
  example: 'proposals list --state draft',
  async run(context, { options }) {
    const filter = defined({ state: stringOption(options.state), kind: stringOption(options.kind) });
    const page = await (await context.client()).listProposals({ ...filter, ...pageQuery(options) });
    const { proposals, nextCursor } = page;
    const row = ({ id, kind, state, title }: Proposal) => [id, kind, state, title];
    context.show(
      page,
      () => [
        ...table(
          ['PROPOSAL', 'KIND', 'STATE', 'TITLE'],
          proposals.map(row),
          'No proposals. Give feedback on runs, then draft with: capstan proposals synthesize',
        ),
        ...nextPageHint({ items: proposals, ...defined({ nextCursor }) }),
      ],
      () => proposals.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<proposalId>',
  summary: 'Show a proposal: the artifact and the rationale',
  example: 'proposals get prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''] }) {
    return showProposal(context, await (await context.client()).getProposal(proposalId));
  },
};

const diff: CommandSpec = {
  name: 'diff',
  takes: '<proposalId>',
  summary: 'Show what the last revision changed, the evidence, and the difference to the installed artifact',
  flags: { '--all': 'show every revision' },
  example: 'proposals diff prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''], options }) {
    const client = await context.client();
    const evidence = await client.getProposalEvidence(proposalId);
    const { change, artifactHash, nearest, sources, obstacle, earlier = [] } = evidence;
    const revisions = await new PrincipalNames(context, client).in(evidence.revisions);
    const shown = options.all === true ? revisions : revisions.slice(-1);
    const titled = (title: string, lines: string): string[] => [
      context.paint('bold', sanitize(title)),
      ...lines.split('\n').map((line) => colourDiffLine(context.paint, line)),
    ];
    context.show(
      evidence,
      () => [
        ...shown.flatMap(({ at, by, note = '', diff: lines }) => titled([at, by, note].join('  ').trim(), lines)),
        ...(revisions.length === 1 ? ['This is the draft; nobody has revised it.'] : []),
        ...(change === undefined ? [] : ['', ...titled('Difference to the artifact that it would replace', change)]),
        '',
        ...propertyLines({ artifactHash }),
        ...earlier.map(({ proposalId: id, at, reason = 'no reason given' }) =>
          context.paint('yellow', sanitize(`rejected before, on ${at.slice(0, 10)}, as ${id}: ${reason}`)),
        ),
        ...sources.map(({ runId, why, excerpt }) =>
          sanitize(`evidence from ${runId}: ${why}${excerpt === undefined ? '' : ` ${JSON.stringify(excerpt)}`}`),
        ),
        ...(sources.some(({ excerpt }) => excerpt !== undefined) ? [] : ['Its evidence has no corrections.']),
        ...(obstacle ? [context.paint('yellow', sanitize(`cannot be applied: ${obstacle.message}`))] : []),
        ...nearest.map(({ ref, score }) => sanitize(`similar to ${ref}: ${Math.round(score * 100)} %`)),
      ],
      () => [artifactHash],
    );
    return EXIT.done;
  },
};

const impact: CommandSpec = {
  name: 'impact',
  takes: '<proposalId>',
  summary: 'Show what applying a proposal would change: what gets it, what is pinned, and how many runs go through it',
  example: 'proposals impact prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''] }) {
    const found = await (await context.client()).getProposalImpact(proposalId);
    const { changes, affected, pinned, runsLastWeek, addedRunsPerWeek, isPartial } = found;
    const row =
      (what: string) =>
      ({ kind, id, nodeId, ref, via }: ImpactedUse) => [what, kind, id, nodeId, ref, via];
    const uses = [...affected.map(row('changes')), ...pinned.map(row('pinned'))];
    context.show(found, () => [
      ...propertyLines({
        changes: changes.join(' ') || undefined,
        'runs last week': String(runsLastWeek.total),
        'added runs per week': addedRunsPerWeek === undefined ? undefined : String(addedRunsPerWeek),
      }),
      ...(uses.length === 0 ? ['Nothing refers to it.'] : table(['EFFECT', 'KIND', 'ID', 'NODE', 'REF', 'VIA'], uses)),
      ...(isPartial ? ['There are more workflows than were looked at.'] : []),
    ]);
    return EXIT.done;
  },
};

const revise: CommandSpec = {
  name: 'revise',
  takes: '<proposalId>',
  summary: 'Revise a proposal, in $EDITOR unless flags are given',
  flags: {
    '--artifact-json <json>': 'the new artifact: a JSON object, @file, or - for standard input',
    '--title <text>': 'the new title',
    '--rationale <text>': 'the new rationale',
    '--note <text>': 'comment for the revision history',
  },
  example: 'proposals revise prop-0mw4x2c1h0001 --note "shorter"',
  async run(context, { args: [proposalId = ''], options }) {
    const client = await context.client();
    const changes = defined({
      title: stringOption(options.title),
      rationale: stringOption(options.rationale),
      note: stringOption(options.note),
    });
    const json = stringOption(options.artifactJson);
    if (json === undefined && Object.keys(changes).length > 0) {
      showProposal(context, await client.reviseProposal(proposalId, changes));
      return EXIT.done;
    }
    const artifact =
      json === undefined
        ? await editedArtifact(context, client, proposalId)
        : await parseJsonObject(context.terminal, json, '--artifact-json');
    showProposal(context, await client.reviseProposal(proposalId, { artifact, ...changes }));
    return EXIT.done;
  },
};

async function editedArtifact(context: Context, client: Client, proposalId: string): Promise<JsonObject> {
  const before = `${JSON.stringify((await client.getProposal(proposalId)).artifact, null, 2)}\n`;
  const after = await editText(context.terminal, `${proposalId}.json`, before);
  if (after === before) throw new UsageError('The text was not changed, so no revision was created.');
  return parseJsonObject(context.terminal, after, 'The edited text');
}

const apply: CommandSpec = {
  name: 'apply',
  takes: '<proposalId>',
  summary: 'Apply a proposal, or request the approval that it needs',
  flags: {
    '--hash <sha256>': 'hash of the reviewed artifact, from `proposals diff` (default: show the artifact and ask)',
  },
  example: 'proposals apply prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''], options }) {
    const client = await context.client();
    // Other hosts have neither hashes nor evidence.
    const isOwn = isCapstan(await client.discover());
    const hash = stringOption(options.hash);
    const artifactHash =
      hash === undefined && isOwn ? await reviewArtifact(context, client, { proposalId, verb: 'Apply' }) : hash;
    const before = isOwn ? await client.getProposalEvidence(proposalId) : undefined;
    const applied = await client.applyProposal(proposalId, artifactHash === undefined ? {} : { artifactHash });
    if ('installedArtifactRef' in applied) {
      const { installedArtifactRef } = applied;
      context.show(
        applied,
        () => [`Applied: ${installedArtifactRef}`],
        () => [installedArtifactRef],
      );
      return EXIT.done;
    }
    const after = before && (await client.getProposalEvidence(proposalId));
    context.show(
      applied,
      () => [
        `Approval required: ${applied.approvalId}`,
        ...(after?.gate ? [whyItWaits(after.gate, before?.gate)] : []),
      ],
      () => [applied.approvalId],
    );
    if (after?.gate)
      context.note(`An approver votes with: capstan approvals approve ${after.runId} ${after.gate.nodeId}`);
    return EXIT.waiting;
  },
};

type Gate = NonNullable<ProposalEvidence['gate']>;

/** Why applying a proposal did not apply it: its gate was open before, it needs more votes, or the caller has none. */
function whyItWaits({ quorum, grantedBy, approvalId }: Gate, before: Gate | undefined): string {
  const votes = `It has ${grantedBy.length} of ${counted(quorum, 'vote')}.`;
  if (before?.approvalId === approvalId) return `Its gate was open already; applying again is no vote. ${votes}`;
  if (grantedBy.length > 0) return `Your vote is counted. ${votes}`;
  return `You wrote a part of it or lack a role that its gate requires, so somebody else has to approve it. ${votes}`;
}

const reject: CommandSpec = {
  name: 'reject',
  takes: '<proposalId>',
  summary: 'Reject a proposal; it is not drafted again from the same evidence',
  flags: { '--note <text>': 'the reason', '--never': 'do not draft it again, whatever new evidence there is' },
  example: 'proposals reject prop-0mw4x2c1h0001 --note "we do this by hand on purpose" --never',
  async run(context, { args: [proposalId = ''], options }) {
    const rejection = defined({ reason: stringOption(options.note), never: options.never === true ? true : undefined });
    return showProposal(context, await (await context.client()).rejectProposal(proposalId, rejection));
  },
};

const archive: CommandSpec = {
  name: 'archive',
  takes: '<proposalId>',
  summary: 'Archive a proposal permanently',
  flags: { '--yes': 'skip the confirmation' },
  example: 'proposals archive prop-0mw4x2c1h0001 --yes',
  async run(context, { args: [proposalId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Archive ${proposalId}?`);
    return showProposal(context, await (await context.client()).archiveProposal(proposalId));
  },
};

const synthesize: CommandSpec = {
  name: 'synthesize',
  summary: 'Draft proposals from recent runs and feedback',
  flags: {
    '--kind <kind...>': 'draft only this kind (default: every kind)',
    '--run <runId...>': 'use only this run',
    '--since <time>': 'use only runs started at this time or later',
  },
  example: 'proposals synthesize --kind automation',
  async run(context, { options }) {
    const reply = await (await context.client()).synthesizeProposals(synthesisRequest(options));
    const { created, heldBack, scannedRuns, pendingLimitReached } = reply;
    context.show(
      reply,
      () => [
        ...(created.length === 0
          ? []
          : table(
              ['PROPOSAL', 'KIND', 'TITLE'],
              created.map((each) => [each.id, each.kind, each.title]),
            )),
        `Drafted ${counted(created.length, 'proposal')} from ${counted(scannedRuns, 'new run')}.`,
        ...(heldBack.length === 0
          ? []
          : [
              '',
              'Seen, and not drafted:',
              ...table(
                ['KIND', 'WHAT', 'WHY'],
                heldBack.map(({ kind, what, message }) => [kind, what, message]),
              ),
            ]),
        ...(pendingLimitReached ? ['Too many proposals wait for a decision. Decide on some, then draft again.'] : []),
      ],
      () => created.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

function synthesisRequest({ kind, run, since }: CommandInput['options']): SynthesizeRequest {
  const [kinds, sourceRunIds] = [listOption(kind), listOption(run)];
  return {
    ...(kinds.length > 0 ? { kinds: [...kinds] as NonNullable<SynthesizeRequest['kinds']> } : {}),
    ...(sourceRunIds.length > 0 ? { sourceRunIds: [...sourceRunIds] } : {}),
    ...defined({ since: stringOption(since) }),
  };
}

const installed: CommandSpec = {
  name: 'installed',
  summary: 'List the artifacts that applied proposals have installed',
  flags: PAGE_FLAGS,
  example: 'proposals installed',
  async run(context, { options }) {
    const client = await context.client();
    const page = await client.listInstalledArtifacts(pageQuery(options));
    const items = await new PrincipalNames(context, client).in(page.items);
    const row = ({ ref, kind, proposalId, installedBy, replaces }: InstalledArtifactSummary) => [
      ref,
      kind,
      proposalId,
      installedBy,
      replaces,
    ];
    context.show(
      page,
      () => [
        ...table(
          ['ARTIFACT', 'KIND', 'PROPOSAL', 'BY', 'REPLACES'],
          items.map(row),
          'Nothing is installed. `capstan proposals list` shows what could be applied.',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ ref }) => ref),
    );
    return EXIT.done;
  },
};

const uninstall: CommandSpec = {
  name: 'uninstall',
  takes: '<ref>',
  summary: 'Uninstall an artifact of a proposal and restore what it replaced',
  flags: { '--yes': 'skip the confirmation' },
  example: 'proposals uninstall art-0mw4x2c1h0001 --yes',
  async run(context, { args: [ref = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Uninstall ${ref}?`);
    await (await context.client()).uninstallArtifact(ref);
    context.show(undefined, () => [`Uninstalled ${ref}.`]);
    return EXIT.done;
  },
};

/** `capstan proposals`. */
export const proposals: CommandGroup = {
  name: 'proposals',
  summary: 'Review, apply and reject proposals',
  commands: [
    list,
    get,
    diff,
    impact,
    preview,
    previews,
    revise,
    apply,
    reject,
    archive,
    synthesize,
    installed,
    effect,
    uninstall,
  ],
};
