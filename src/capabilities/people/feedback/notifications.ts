import { RUN_ANNOTATED } from '../../../protocol/people/annotations.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Feed } from '../../operations/feed/door.ts';
import { type AnnotationRow, findAnnotation } from './records.ts';

/** The first word of hints about new annotations. */
export const ANNOTATION_HINT = 'annotation';

/** Shows new annotations to those who follow the run or the tenant, on this host and on others. */
export class AnnotationNotifications {
  readonly #runtime: Pick<Runtime, 'store' | 'hub' | 'log'>;
  readonly #feed: Pick<Feed, 'wake'>;

  constructor(runtime: Pick<Runtime, 'store' | 'hub' | 'log'>, feed: Pick<Feed, 'wake'>) {
    this.#runtime = runtime;
    this.#feed = feed;
  }

  /** Called after an annotation was committed here. */
  publish({ tenant, run_id, annotation_id, body }: AnnotationRow): void {
    this.#runtime.hub.publishNotice(run_id, { event: RUN_ANNOTATED, data: body });
    this.#runtime.store.hint([`${ANNOTATION_HINT}:${run_id}:${annotation_id}:${tenant}`]);
    this.#feed.wake(tenant);
  }

  /** Called with the hint of another host. Reads the annotation only if somebody here follows the run. */
  async onHint(about: string): Promise<void> {
    const { store, hub, log } = this.#runtime;
    const [runId = '', annotationId = '', ...tenant] = about.split(':');
    if (!hub.hasNoticeListeners(runId)) return;
    try {
      const [row] = await store.read<{ body: string }>(findAnnotation(tenant.join(':'), runId, annotationId));
      if (row) hub.publishNotice(runId, { event: RUN_ANNOTATED, data: row.body });
    } catch (error) {
      log.warn({ runId, err: error }, 'could not read an annotation of another host; open streams do not show it');
    }
  }
}
