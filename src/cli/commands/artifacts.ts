import type { CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { eventsOf } from '../run-report.ts';
import { table } from '../text.ts';
import { valueLines } from '../value-lines.ts';

/** `capstan runs artifacts`. */
export const artifacts: CommandSpec = {
  name: 'artifacts',
  takes: '<runId> [artifactId]',
  summary: 'List the artifacts of a run, or print one, by its id or by its node',
  example: 'runs artifacts run-0mw4x2c1h0001 report',
  async run(context, { args: [runId = '', artifactId] }) {
    const client = await context.client();
    const created = (await eventsOf(client, runId)).flatMap((event) =>
      event.type === 'artifact.created' ? [event.payload] : [],
    );
    if (artifactId !== undefined) {
      const ofNode = created.findLast(({ nodeId }) => nodeId === artifactId);
      const artifact = await client.getArtifact(runId, ofNode?.artifactId ?? artifactId);
      context.show(artifact, () => valueLines(artifact.data));
      return EXIT.done;
    }
    context.show(
      created,
      () =>
        table(
          ['ARTIFACT', 'TYPE', 'NODE', 'SUMMARY'],
          created.map((each) => [each.artifactId, each.artifactType, each.nodeId, each.summary]),
          'The run has made no artifacts. Nodes with an `artifactType` make some.',
        ),
      () => created.map((each) => each.artifactId),
    );
    return EXIT.done;
  },
};
