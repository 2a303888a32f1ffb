import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readConfig, VARIABLES } from '../src/config.ts';
import { COUNTERS, GAUGES, HISTOGRAMS } from '../src/http/metric-table.ts';
import { createMetrics } from '../src/http/metrics.ts';
import { operatorPages } from '../src/http/pages.ts';
import { realClock } from '../src/system/real.ts';
import { VERSION } from '../src/version.ts';

/**
 * Goal: the files in `deploy/` agree with the code. Method: every port, path, variable, version and metric in them is
 * looked up where the code has it; nothing is built or started.
 */

const ROOT = new URL('../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');
const yaml = (path: string) => parse(read(`deploy/${path}`));

const PACKAGE = JSON.parse(read('package.json')) as {
  bin: Record<string, string>;
  files: readonly string[];
  scripts: Record<string, string>;
  devDependencies: Record<string, string>;
};
const DEFAULTS = readConfig({}, {});
const SETTINGS = new Set(Object.values(VARIABLES).map(({ variable }) => variable));
const metrics = createMetrics(realClock);
const PAGES = operatorPages({
  isReady: async () => true,
  isDraining: () => false,
  isShortOfSpace: () => false,
  quarantined: async () => 0,
  clockOffsetMs: () => 0,
  metrics,
  metricsAccess: 'public',
}).map(({ path }) => path);
const [ALIVE, READY, METRICS] = ['/healthz', '/readyz', '/metrics'];

/** Those that are no settings, because Node reads them. */
const OF_NODE: readonly string[] = ['NODE_ENV'];
const unknownSettings = (names: readonly string[]): string[] =>
  names.filter((name) => !SETTINGS.has(name) && !OF_NODE.includes(name));

/** Lines as NAME=value, without comments. */
function assignments(text: string): [string, string][] {
  return [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]);
}

/** A number of milliseconds that only one file needs to know. */
function constantIn(path: string, name: string): number {
  const [, digits] = new RegExp(`^const ${name} = ([\\d_]+);`, 'm').exec(read(path)) ?? [];
  expect(digits, `${name} in ${path}`).toBeDefined();
  return Number(digits!.replaceAll('_', ''));
}

/** How long a stop takes at most: requests, running nodes, those that are aborted, and the time to drain. */
function longestStopMs(drainMs: number): number {
  const served = constantIn('src/http/server.ts', 'DRAIN_MS');
  return drainMs + served + constantIn('src/host.ts', 'GRACE_MS') + constantIn('src/runtime/executor.ts', 'ABORT_MS');
}

it('has YAML and JSON that can be read', () => {
  const files = globSync('deploy/**/*.{yaml,json}', { cwd: fileURLToPath(ROOT) });
  expect(files.length).toBeGreaterThan(8);
  for (const file of files) expect(() => parse(read(file)), file).not.toThrow();
});

describe('the Dockerfile', () => {
  const text = read('deploy/Dockerfile');
  const all = (instruction: string): string[] =>
    [...text.matchAll(new RegExp(`^${instruction} (.*)$`, 'gm'))].map(([, rest = '']) => rest);
  const environment = Object.fromEntries(all('ENV').flatMap((line) => assignments(line.replaceAll(' ', '\n'))));

  it('builds and runs on the Node that the tests run on', () => {
    const version = PACKAGE.devDependencies.node;
    expect(all('FROM')).toEqual([`node:${version}-slim AS build`, `node:${version}-slim`]);
    expect(`v${version}`).toBe(process.version);
  });

  it('sets variables that a host takes, and listens where it says', () => {
    expect(unknownSettings(Object.keys(environment))).toEqual([]);
    expect(readConfig({}, environment)).toMatchObject({ host: '0.0.0.0', port: DEFAULTS.port, dataFolder: '/data' });
    expect(all('EXPOSE')).toEqual([String(DEFAULTS.port)]);
    expect(all('VOLUME')).toEqual([environment.CAPSTAN_DATA]);
    expect(text).toMatch(/^RUN install -d -m 0700 -o 1000 -g 1000 \/data$/m);
  });

  it('runs as a user who is not root, with a program that is published', () => {
    expect(all('USER')).toEqual(['1000:1000']);
    const [program, file, command] = JSON.parse(all('CMD').at(-1)!) as string[];
    expect([program, file, command]).toEqual(['node', PACKAGE.bin.capstan, 'serve']);
    expect(existsSync(new URL(file!, ROOT))).toBe(true);
    expect(PACKAGE.files).toContain(file!.split('/')[0]);
  });

  it('asks whether the process is alive', () => {
    const [check] = all('HEALTHCHECK');
    expect(PAGES).toContain(ALIVE);
    expect(check).toContain(`:\${process.env.PORT}${ALIVE}\``);
    expect(JSON.parse(check!.slice(check!.indexOf('[')))).toHaveLength(3);
  });

  it('takes everything that is published, and only that', () => {
    const copied = all('COPY').flatMap((line) => /^--from=build \/src\/(\S+) /.exec(line)?.[1] ?? []);
    const published = PACKAGE.files
      .filter((path) => path !== 'deploy')
      .map((path) => path.replace(/^docs\/.*/, 'docs'));
    expect(copied.toSorted()).toEqual(['node_modules', 'package.json', ...new Set(published)].toSorted());
  });

  it('uses scripts that there are', () => {
    const scripts = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name);
    expect(scripts).toEqual(['build']);
    expect(scripts.filter((name) => !PACKAGE.scripts[name])).toEqual([]);
  });
});

describe('the compose file', () => {
  const { services } = yaml('compose/compose.yaml');
  const { capstan, collector } = services;

  it('sets variables that a host takes, each of which the example of .env has', () => {
    expect(unknownSettings(Object.keys(capstan.environment))).toEqual([]);
    const used = [...JSON.stringify(services).matchAll(/\$\{(\w+)/g)].map(([, name = '']) => name);
    const offered = assignments(read('deploy/compose/.env.example')).map(([name]) => name);
    expect([...new Set(used)].toSorted()).toEqual(offered.toSorted());
  });

  it('builds our image, publishes its port to this machine only, and gives it time to stop', () => {
    expect(existsSync(new URL(capstan.build.dockerfile, ROOT))).toBe(true);
    expect(new URL(`deploy/compose/${capstan.build.context}`, ROOT).href).toBe(ROOT.href);
    expect(capstan.ports).toEqual([`127.0.0.1:${DEFAULTS.port}:${DEFAULTS.port}`]);
    expect(capstan.read_only).toBe(true);
    expect(Number.parseInt(capstan.stop_grace_period, 10) * 1_000).toBeGreaterThan(longestStopMs(DEFAULTS.drainMs));
  });

  it('has a collector that takes what the host pushes, and serves no metrics besides', () => {
    const { receivers, service, exporters } = yaml('compose/collector.yaml');
    const about = Object.entries(capstan.environment).filter(([name]) => /^OTEL_|_METRICS$/.test(name));
    const environment = Object.fromEntries(about.map(([name, value]) => [name, String(value)]));
    const { traces, sentMetrics, metricsAccess } = readConfig({}, environment);
    const endpoint = `http://collector:${receivers.otlp.protocols.http.endpoint.split(':')[1]}`;
    expect([traces?.url, sentMetrics?.url]).toEqual([`${endpoint}/v1/traces`, `${endpoint}/v1/metrics`]);
    expect(metricsAccess).toBe('off');
    expect(Object.keys(service.pipelines)).toEqual(['traces', 'metrics']);
    expect(collector.volumes[0]).toContain('./collector.yaml:');
    for (const pipeline of Object.values<{ receivers: string[]; exporters: string[] }>(service.pipelines)) {
      for (const name of pipeline.receivers) expect(receivers).toHaveProperty(name);
      for (const name of pipeline.exporters) expect(exporters).toHaveProperty(name);
    }
  });
});

describe('the Kubernetes files', () => {
  const kustomization = yaml('kubernetes/kustomization.yaml');
  const { spec } = yaml('kubernetes/deployment.yaml');
  const pod = spec.template.spec;
  const [container] = pod.containers;
  const literals = assignments(kustomization.configMapGenerator[0].literals.join('\n'));
  const secrets = assignments(read('deploy/kubernetes/secret.env.example'));

  it('are all named, and deploy the version of this package', () => {
    for (const file of kustomization.resources)
      expect(existsSync(new URL(`deploy/kubernetes/${file}`, ROOT)), file).toBe(true);
    expect(kustomization.images).toMatchObject([{ name: container.image, newTag: VERSION }]);
  });

  it('set variables that a host takes', () => {
    expect(unknownSettings([...literals, ...secrets].map(([name]) => name))).toEqual([]);
    expect(() => readConfig({}, Object.fromEntries([...literals, ...secrets]))).not.toThrow();
  });

  it('probe the port and the paths of the host', () => {
    expect(container.ports).toEqual([{ name: 'http', containerPort: DEFAULTS.port }]);
    const { annotations } = spec.template.metadata;
    expect([annotations['prometheus.io/port'], annotations['prometheus.io/path']]).toEqual([
      String(DEFAULTS.port),
      METRICS,
    ]);
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    expect(probes.map(({ httpGet }) => httpGet.path)).toEqual([ALIVE, ALIVE, READY]);
    for (const { httpGet } of probes) expect(httpGet.port).toBe('http');
    for (const path of [ALIVE, READY, METRICS]) expect(PAGES).toContain(path);
    expect(yaml('kubernetes/service.yaml').spec.ports[0].targetPort).toBe('http');
  });

  it('give a host time to drain before it is stopped, and to stop before it is killed', () => {
    const { drainMs } = readConfig({}, Object.fromEntries(literals));
    const { periodSeconds, timeoutSeconds, failureThreshold } = container.readinessProbe;
    expect(drainMs).toBeGreaterThan((periodSeconds * failureThreshold + timeoutSeconds) * 1_000);
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(longestStopMs(drainMs));
  });

  it('run several hosts, as the user of the image, on a file system that cannot be written to', () => {
    expect(spec.replicas).toBeGreaterThan(1);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1_000, runAsGroup: 1_000 });
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    const budget = yaml('kubernetes/disruption-budget.yaml').spec;
    expect(budget).toEqual({ maxUnavailable: 1, selector: { matchLabels: kustomization.labels[0].pairs } });
  });
});

it('is installed from the package of this version, as the operating page says', () => {
  const page = read('docs/operating.md');
  expect(page).toContain(`./capstan-${VERSION}.tgz`);
  expect(PACKAGE.files).toContain('deploy');
  const named = [...page.matchAll(/`(deploy\/[\w./-]+)`/g)].map(([, path = '']) => path);
  expect(named.filter((path) => !existsSync(new URL(path, ROOT)))).toEqual([]);
});

describe('the systemd unit', () => {
  const lines = assignmentsOfUnit(read('deploy/systemd/capstan.service'));
  const of = (key: string): string[] => lines.flatMap(([name, value]) => (name === key ? [value] : []));

  it('starts the command of the package, with variables that a host takes', () => {
    const [program = '', command] = of('ExecStart')[0]!.split(' ');
    expect(PACKAGE.bin).toHaveProperty(program.split('/').at(-1)!);
    expect(command).toBe('serve');
    const environment = Object.fromEntries(assignments(of('Environment').join('\n')));
    expect(unknownSettings(Object.keys(environment))).toEqual([]);
    expect(environment.CAPSTAN_DATA).toBe(`/var/lib/${of('StateDirectory')[0]}`);
  });

  it('does not run as root, and gives the host time to stop', () => {
    expect(of('User')).toEqual(['capstan']);
    expect(Number(of('TimeoutStopSec')[0]) * 1_000).toBeGreaterThan(longestStopMs(DEFAULTS.drainMs));
  });
});

function assignmentsOfUnit(text: string): [string, string][] {
  return [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]);
}

describe('the dashboard and the alerts', async () => {
  const { panels } = yaml('grafana/capstan.json') as { panels: { id: number; targets: { expr: string }[] }[] };
  const rules = yaml('prometheus/alerts.yaml').groups.flatMap((group: { rules: object[] }) => group.rules) as {
    alert: string;
    expr: string;
    labels: { severity: string };
    annotations: { summary: string };
  }[];
  const expressions = [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...rules.map(({ expr }) => expr),
  ];
  const own = Object.entries<{ help: string; labels?: readonly string[] }>({ ...COUNTERS, ...HISTOGRAMS, ...GAUGES });
  const fromNode = [...(await metrics.text()).matchAll(/^# TYPE (\w+) \w+$/gm)].map(([, name = '']) => name);
  const names = new Set([
    ...own.map(([name]) => name),
    ...fromNode,
    ...Object.keys(HISTOGRAMS).flatMap((name) => ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`)),
  ]);

  it('use metrics that there are', () => {
    const used = expressions.flatMap((expression) => expression.match(/\bcapstan_\w+/g) ?? []);
    expect(used.length).toBeGreaterThan(40);
    expect(used.filter((name) => !names.has(name))).toEqual([]);
  });

  it('use labels that there are', () => {
    const labels = new Set(['le', 'instance', 'job', ...own.flatMap(([, row]) => row.labels ?? [])]);
    const used = expressions.flatMap((expression) => [
      ...[...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', ')),
      ...[...expression.matchAll(/(\w+)=~?"/g)].map(([, name = '']) => name),
    ]);
    expect(used.filter((name) => !labels.has(name))).toEqual([]);
  });

  it('are about metrics that the operating page lists, all of them', () => {
    const page = read('docs/operating.md');
    expect(own.map(([name]) => name).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it('name each alert once, and the operating page says what to do for each', () => {
    const page = read('docs/operating.md');
    const alerts = rules.map(({ alert }) => alert);
    expect(new Set(alerts).size).toBe(alerts.length);
    expect(alerts.filter((alert) => !page.includes(`| \`${alert}\` |`))).toEqual([]);
    for (const { labels, annotations } of rules) {
      expect(['critical', 'warning', 'info']).toContain(labels.severity);
      expect(annotations.summary).not.toBe('');
    }
    expect(yaml('prometheus/prometheus.yaml')).toMatchObject({
      rule_files: ['alerts.yaml'],
      scrape_configs: [{ metrics_path: METRICS, static_configs: [{ targets: [`localhost:${DEFAULTS.port}`] }] }],
    });
  });

  it('has panels with ids of their own', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });
});
