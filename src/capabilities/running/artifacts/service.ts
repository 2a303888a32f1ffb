import type { Runtime } from '../../../runtime/runtime.ts';
import type { Caller } from '../../request.ts';
import { findArtifact } from './records.ts';

/** Artifacts that runs produced. */
export class ArtifactService {
  readonly #runtime: Pick<Runtime, 'store' | 'reader'>;

  constructor(runtime: Pick<Runtime, 'store' | 'reader'>) {
    this.#runtime = runtime;
  }

  /** The artifact as JSON text; undefined if the caller cannot see the run. */
  async find({ subject }: Caller, runId: string, artifactId: string): Promise<string | undefined> {
    const { store, reader } = this.#runtime;
    if (!(await reader.row(subject, runId))) return undefined;
    const [row] = await store.read<{ body: string }>(findArtifact(subject.tenant, runId, artifactId));
    return row?.body;
  }
}
