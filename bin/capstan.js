#!/usr/bin/env node
// Plain JavaScript for older Nodes too: on those this file starts a newer one, or says that it is needed.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { isOfTheseSources } from './sources.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);
const NEEDED = Number(/\d+/.exec(require('../package.json').engines.node)[0]);

/**
 * How V8 collects garbage. Set before the program is loaded, because V8 plans collections while it loads.
 *
 * Pretenuring is off: V8 allocates in old space what has survived young collections, and when load arrives while its heap
 * is still small, those are the objects of requests. Each young collection then also keeps everything that they refer to:
 * up to 40 % of what was allocated, for as long as the process runs. Whether it comes to that depends on the first seconds.
 *
 * The memory reducer is off: it collects all garbage when the host rests, and drops compiled code with it, so that the
 * next requests cost twice as much. `src/system/memory.ts` decides when that is worth it.
 */
const GARBAGE_COLLECTION = ['--no-allocation-site-pretenuring', '--memory-reducer-gc-count=0'];

/**
 * The compilers that make hot code faster. A host starts without them, for nothing runs often before it listens: with them
 * it takes as long to start, and keeps 10 MB more for as long as it has nothing to do.
 */
const OPTIMIZERS = ['turbofan', 'maglev'];

/** The newest Node that is known to have these flags. V8 prints an error for each flag that it does not have. */
const FLAGS_UNTIL = 26;
/** How often a command that npm has started looks whether it is still wanted. */
const LOOK_MS = 1_000;

/** Runs the command on this Node if it is new enough, and otherwise on the one that npm has installed beside it. */
async function start(args) {
  // npm sets this to `start` for `npm start` and to `npx` for `npx`.
  if (['start', 'npx'].includes(process.env.npm_lifecycle_event)) endWithShell();
  if (isNewEnough(process.versions.node)) {
    const hasFlags = Number.parseInt(process.versions.node, 10) <= FLAGS_UNTIL;
    const startsPlain = hasFlags && args[0] === 'serve';
    if (hasFlags) for (const flag of GARBAGE_COLLECTION) setFlagsFromString(flag);
    if (startsPlain) for (const compiler of OPTIMIZERS) setFlagsFromString(`--no-${compiler}`);
    // After the flags, because cached code can only be used with the flags that it was compiled with.
    module.enableCompileCache(compileCache());
    // The program of `serve` has been loaded when the host listens.
    await import(pathToFileURL(programPath()).href);
    if (startsPlain) for (const compiler of OPTIMIZERS) setFlagsFromString(`--${compiler}`);
    return;
  }
  const node = installedNode();
  if (node === undefined) {
    process.stderr.write(tooOld(process.versions.node));
    process.exitCode = 1;
    return;
  }
  runOn(node, [fileURLToPath(import.meta.url), ...args]);
}

/**
 * Stops this process when the shell that npm started it in has ended. npm sends SIGTERM to that shell, which does not pass
 * it on, so the host would be left behind. A signal that comes by itself is enough: a second one would cut the stop short.
 */
function endWithShell() {
  const shell = process.ppid;
  const look = setInterval(() => {
    if (process.ppid !== shell) process.kill(process.pid, 'SIGTERM');
  }, LOOK_MS);
  look.unref();
  for (const signal of ['SIGTERM', 'SIGINT']) {
    const onSignal = () => {
      clearInterval(look);
      process.off(signal, onSignal);
      // Nobody else listens: the signal does what it does without a listener.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    };
    process.on(signal, onSignal);
  }
}

/** The bundle; in a checkout whose sources have changed since it was made, the sources. They take three times as long to start. */
function programPath() {
  const bundle = join(ROOT, 'dist');
  const sources = join(ROOT, 'src', 'cli', 'main.ts');
  return existsSync(sources) && !isOfTheseSources(ROOT, bundle) ? sources : join(bundle, 'main.js');
}

/** Where Node keeps what it has compiled. In the folder for temporary files, others could put something there first. */
function compileCache() {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'capstan', 'compiled');
}

/** Whether a version of Node can run this package. */
function isNewEnough(version) {
  return Number.parseInt(version, 10) >= NEEDED;
}

/** The Node of the npm package `node`, if it is installed and new enough. */
function installedNode() {
  try {
    const manifest = require.resolve('node/package.json');
    const file = join(dirname(manifest), 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
    return isNewEnough(require(manifest).version) && existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/** What is said where no Node can run this package. */
function tooOld(version) {
  return `Capstan needs Node ${NEEDED} or newer, and this is Node ${version}. Install it from https://nodejs.org, or only for this project with: npm install node@${NEEDED}\n`;
}

function runOn(node, args) {
  const child = spawn(node, args, { stdio: 'inherit' });
  // Ctrl-C at a terminal reaches both processes; a second signal would end the host without its graceful stop.
  process.on('SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT');
  });
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 1;
    if (signal === null) return;
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

await start(process.argv.slice(2));
