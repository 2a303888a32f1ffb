import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import { findArtifact } from './records.ts';

export type ArtifactService = ReturnType<typeof artifactService>;

export function artifactService({ runtime: { store, reader } }: Host) {
  return {
    /** The artifact as JSON text, for whoever may see its run. */
    async find(caller: Caller, runId: string, artifactId: string): Promise<string | undefined> {
      const { subject } = caller;
      if (!(await reader.row(subject, runId))) return undefined;
      const [row] = await store.read<{ body: string }>(findArtifact(subject.tenant, runId, artifactId));
      return row?.body;
    },
  };
}
