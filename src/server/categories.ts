/** ACL categories of a command: those it declares, and those that follow from its flags. */
import type { CommandEntry } from './command-entry.ts';

/** All of them, in the order in which Redis lists them. */
export const CATEGORIES = [
  'keyspace',
  'read',
  'write',
  'set',
  'sortedset',
  'list',
  'hash',
  'string',
  'bitmap',
  'hyperloglog',
  'geo',
  'stream',
  'pubsub',
  'admin',
  'fast',
  'slow',
  'blocking',
  'dangerous',
  'connection',
  'transaction',
  'scripting',
];

export function commandCategories(entry: CommandEntry): string[] {
  const { command } = entry;
  const has = (flag: (typeof command.flags)[number]): boolean => command.flags.includes(flag);
  const categories = new Set<string>(command.categories);
  if (has('write')) categories.add('write');
  if (has('readonly') && !categories.has('scripting')) categories.add('read');
  if (has('admin')) categories.add('admin').add('dangerous');
  if (has('pubsub')) categories.add('pubsub');
  if (has('fast')) categories.add('fast');
  if (has('blocking')) categories.add('blocking');
  if (!categories.has('fast')) categories.add('slow');
  return CATEGORIES.filter((category) => categories.has(category));
}
