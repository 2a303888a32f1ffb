/** What processes use of the processor, as Linux counts it. */
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** What the kernel counts processor time in. */
const TICK_MS = 10;
/** How much of one core others may use while something is measured. */
const QUIET_CORES = 0.15;
const LOOK_MS = 1_000;

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** With that of its children that have ended. */
  readonly cpuMs: number;
}

/**
 * Read again if a process has ended meanwhile: what it used is then missing, or, where its parent is read later, counted
 * twice.
 */
function processes(): Process[] {
  for (;;) {
    const pids = runningPids();
    const found = pids.map(processOf);
    const left = new Set(runningPids());
    if (pids.every((pid) => left.has(pid))) return found.filter((process) => process !== undefined);
  }
}

function runningPids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

function processOf(pid: number): Process | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { pid, parent: Number(fields[1]), cpuMs: ticks * TICK_MS };
  } catch {
    return undefined; // It has ended since.
  }
}

/** Processor time that a process and everything that it started have used, in milliseconds. */
export function cpuOfTree(root: number): number {
  const all = processes();
  const sumOf = (pid: number): number =>
    all.filter(({ parent }) => parent === pid).reduce((sum, child) => sum + sumOf(child.pid), 0) +
    (all.find((each) => each.pid === pid)?.cpuMs ?? 0);
  return sumOf(root);
}

/** Processor time that a process has used in its threads of now, in microseconds: finer than the ticks of the others. */
export function cpuOfThreads(pid: number): number {
  const folder = `/proc/${pid}/task`;
  const nanoseconds = readdirSync(folder).map((thread) => {
    return Number(readFileSync(`${folder}/${thread}/schedstat`, 'utf8').split(' ')[0]);
  });
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1_000;
}

/** Processor time that the whole machine has used, in milliseconds. */
function cpuOfMachine(): number {
  const [user = 0, nice = 0, system = 0, _idle, _waiting, irq = 0, softirq = 0, stolen = 0] = readFileSync(
    '/proc/stat',
    'utf8',
  )
    .split('\n')[0]!
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq + stolen) * TICK_MS;
}

/** How many cores others used while something was done; a machine that does not say counts as quiet. */
export async function coresOfOthers<T>(act: () => Promise<T>): Promise<{ readonly result: T; readonly cores: number }> {
  const usedByOthers = (): number => cpuOfMachine() - cpuOfTree(process.pid);
  const [before, startedAt] = [usedByOthers(), performance.now()];
  const result = await act();
  return { result, cores: Math.max(0, (usedByOthers() - before) / (performance.now() - startedAt)) };
}

/** Waits until others leave the cores alone, or the patience is at its end. */
export async function untilQuiet(patienceMs: number): Promise<void> {
  for (const startedAt = performance.now(); performance.now() - startedAt < patienceMs; ) {
    const { cores } = await coresOfOthers(() => new Promise((resolve) => setTimeout(resolve, LOOK_MS)));
    if (cores < QUIET_CORES) return;
  }
}

/** The machine, in one line. */
export function machine(): string {
  const [, model = 'unknown processor'] = /^model name\s*:\s*(.+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8')) ?? [];
  return `${availableParallelism()} cores of ${model.trim()}, Linux, Node ${process.version}`;
}
