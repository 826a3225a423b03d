/** Every command of the server. */
import type { Command } from './command.ts';
import { aclCommands } from './commands/acl.ts';
import { bitCommands } from './commands/bits.ts';
import { clientCommands } from './commands/client.ts';
import { commandCommands } from './commands/command-docs.ts';
import { configCommands } from './commands/config.ts';
import { connectionCommands } from './commands/connection.ts';
import { databaseCommands } from './commands/databases.ts';
import { debugCommands } from './commands/debug.ts';
import { dumpCommands } from './commands/dump.ts';
import { hashCommands } from './commands/hashes.ts';
import { infoCommands } from './commands/info.ts';
import { keyCommands } from './commands/keys.ts';
import { latencyCommands } from './commands/latency.ts';
import { listCommands } from './commands/lists.ts';
import { memoryCommands } from './commands/memory.ts';
import { persistenceCommands } from './commands/persistence.ts';
import { pubsubCommands } from './commands/pubsub.ts';
import { serverAdminCommands } from './commands/server-admin.ts';
import { setCommands } from './commands/sets.ts';
import { slowlogCommands } from './commands/slowlog.ts';
import { streamGroupCommands } from './commands/stream-groups.ts';
import { streamInfoCommands } from './commands/stream-info.ts';
import { streamCommands } from './commands/streams.ts';
import { stringCommands } from './commands/strings.ts';
import { topologyCommands } from './commands/topology.ts';
import { transactionCommands } from './commands/transactions.ts';
import { zsetCommands } from './commands/zsets.ts';

export const commandTable: readonly Command[] = [
  ...stringCommands,
  ...bitCommands,
  ...keyCommands,
  ...dumpCommands,
  ...listCommands,
  ...setCommands,
  ...hashCommands,
  ...zsetCommands,
  ...streamCommands,
  ...streamGroupCommands,
  ...streamInfoCommands,
  ...transactionCommands,
  ...pubsubCommands,
  ...connectionCommands,
  ...clientCommands,
  ...databaseCommands,
  ...serverAdminCommands,
  ...persistenceCommands,
  ...configCommands,
  ...infoCommands,
  ...commandCommands,
  ...slowlogCommands,
  ...latencyCommands,
  ...memoryCommands,
  ...debugCommands,
  ...aclCommands,
  ...topologyCommands,
];
