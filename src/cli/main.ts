#!/usr/bin/env node
import { Command } from 'commander';
import { VERSION } from '../version.ts';
import { addAudit } from './commands/audit.ts';
import { addServe } from './commands/serve.ts';

const program = new Command('capstan')
  .description('An OpenWOP host: run agent workflows you can watch, pause, judge and replay')
  .version(VERSION)
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
addServe(program);
addAudit(program);
await program.parseAsync();
