/** A path template, and how it is served. */
export interface KnownPath {
  readonly path: string;
  readonly methods: readonly string[];
  readonly isPublic: boolean;
}

/** One method of a path template. */
interface ServedPath {
  readonly path: string;
  readonly method: string;
  readonly isPublic: boolean;
}

/**
 * The paths that the host serves, for requests that no route takes: their path may be known and their method not. It
 * looks at every template in turn. Routes that refuse would be quicker to find, and double the time that a start takes
 * to mount all routes.
 */
export class KnownPaths {
  readonly #patterns: readonly { readonly known: KnownPath; readonly pattern: RegExp }[];

  constructor(served: readonly ServedPath[]) {
    const byPath = Map.groupBy(served, ({ path }) => path);
    const known = [...byPath].map(([path, all]) => ({
      path,
      methods: [...new Set(all.map(({ method }) => method))],
      isPublic: all.some(({ isPublic }) => isPublic),
    }));
    this.#patterns = known
      .sort((a, b) => fixedLength(b.path) - fixedLength(a.path))
      .map((each) => ({ known: each, pattern: patternOf(each.path) }));
  }

  /**
   * Paths for which the router would find a less specific one, as `/v1/runs/{runId}` for `GET /v1/runs/{runId}:fork`, and
   * the methods with which it would.
   */
  get shadowed(): readonly { readonly known: KnownPath; readonly methods: readonly string[] }[] {
    const bySegments = Map.groupBy(this.#patterns, ({ known }) => segmentsOf(known.path));
    return this.#patterns.flatMap(({ known }) => {
      const url = known.path.replace(PARAMETER, 'x');
      const others = bySegments.get(segmentsOf(known.path))!.filter(({ pattern }) => pattern.test(url));
      const methods = others
        .flatMap((other) => other.known.methods)
        .filter((method) => !known.methods.includes(method));
      return methods.length === 0 ? [] : [{ known, methods: [...new Set(methods)] }];
    });
  }

  /** The most specific template that a URL matches. */
  find(url: string): KnownPath | undefined {
    const [path = ''] = url.split('?', 1);
    return this.#patterns.find(({ pattern }) => pattern.test(path))?.known;
  }
}

const PARAMETER = /\{\w+\}|\*/g;

function segmentsOf(path: string): number {
  return path.split('/').length;
}

function fixedLength(path: string): number {
  return path.replace(PARAMETER, '').length;
}

/** A parameter before a `:verb` ends at the colon. */
function patternOf(path: string): RegExp {
  const text = path
    .replace(/[.+?^$()[\]\\|]/g, '\\$&')
    .replace(/\{\w+\}(?=:)/g, '[^:/]+')
    .replace(/\{\w+\}/g, '[^/]+')
    .replace(/\*/g, '.*');
  return new RegExp(`^${text}$`);
}
