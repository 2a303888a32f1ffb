/** Translates a path template for the router. A parameter before a `:verb` ends at the colon. */
export function routerPath(path: string): string {
  return path
    .replace(/\{(\w+)\}(?=:)/g, ':$1(^[^:/]+)')
    .replace(/(?<=[\w)]):(?=[a-z])/g, '::')
    .replace(/\{(\w+)\}/g, ':$1');
}
