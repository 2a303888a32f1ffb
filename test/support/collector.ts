import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeMetrics, decodeTraces } from './otlp.ts';

/** A span as a collector got it, in whichever form it was sent. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty if it is the first of its trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly status: number;
  readonly message: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly resource: Readonly<Record<string, unknown>>;
}

/** A series of a metric as a collector got it. */
export interface CollectedMetric {
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly unit: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** How often something was measured, if it is a histogram. */
  readonly value: number;
  readonly sum?: number;
  readonly counts?: readonly number[];
  readonly bounds?: readonly number[];
  readonly resource: Readonly<Record<string, unknown>>;
}

interface Export {
  readonly headers: IncomingHttpHeaders;
  readonly path: string;
  readonly body: Buffer;
}

const PATIENCE_MS = 30_000;

/** An OpenTelemetry collector on this machine: it takes traces and metrics over HTTP, as JSON and as protobuf. */
export class Collector {
  readonly exports: Export[] = [];
  readonly spans: CollectedSpan[] = [];
  /** All metrics of the last push. */
  metrics: readonly CollectedMetric[] = [];
  readonly #server: Server;
  #onChange: () => void = () => {};

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      const { headers, url: path = '' } = request;
      this.exports.push({ headers, path, body });
      const type = headers['content-type'] ?? '';
      if (path.endsWith('/metrics')) this.metrics = decodeMetrics(body, type);
      else this.spans.push(...decodeTraces(body, type));
      response.writeHead(200, { 'content-type': headers['content-type'] });
      response.end(headers['content-type'] === 'application/json' ? '{}' : undefined);
      this.#onChange();
    });
  }

  static async open(): Promise<Collector> {
    const collector = new Collector();
    collector.#server.listen(0, '127.0.0.1');
    await once(collector.#server, 'listening');
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The spans of one trace, once there are as many as wanted. */
  async trace(traceId: string, isWhole: (spans: readonly CollectedSpan[]) => boolean): Promise<CollectedSpan[]> {
    const timeout = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const spans = this.spans.filter((span) => span.traceId === traceId);
      if (isWhole(spans)) return spans;
      await new Promise<void>((resolve, reject) => {
        this.#onChange = resolve;
        timeout.onabort = () => reject(new Error(`the trace is not whole:\n${outline(spans).join('\n')}`));
      });
    }
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** Whether the span of a run has arrived, which is the last one that the log gives. */
export function hasRun(runId: string): (spans: readonly CollectedSpan[]) => boolean {
  return (spans) =>
    spans.some(({ name, attributes }) => name === 'openwop.run' && attributes['openwop.run_id'] === runId);
}

/** The spans without those of appends to the log, of which each host has its own. */
export function withoutAppends(spans: readonly CollectedSpan[]): CollectedSpan[] {
  return spans.filter(({ name }) => name !== 'openwop.event.append');
}

/** The tree of a trace as indented lines, siblings by name; spans whose parent is not there begin at the left. */
export function outline(spans: readonly CollectedSpan[]): string[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const inOrder = [...spans].sort((a, b) => a.name.localeCompare(b.name));
  const under = (parent: CollectedSpan | undefined, indent: string): string[] =>
    inOrder
      .filter((span) => (parent ? span.parentSpanId === parent.spanId : !ids.has(span.parentSpanId)))
      .flatMap((span) => [indent + span.name, ...under(span, `${indent}  `)]);
  return under(undefined, '');
}
