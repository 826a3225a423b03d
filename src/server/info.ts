/** INFO: Redis's sections and fields, and those of the engine, the tier, the log and checkpoints. */
import os from 'node:os';
import type { Server, InfoFields } from './server.ts';
import { residentMemory } from './resident-memory.ts';
import { REDIS_VERSION, VERSION } from './version.ts';

/** Sections shown by a plain INFO, in order; `name` is the title. */
const DEFAULT = [
  'server',
  'clients',
  'memory',
  'persistence',
  'stats',
  'replication',
  'cpu',
  'modules',
  'errorstats',
  'cluster',
  'keyspace',
] as const;
/** Sections that have to be asked for, by `all` and `everything` too. */
const ON_REQUEST = ['commandstats', 'latencystats'] as const;

/** 1.50M, as Redis writes sizes. */
function humanSize(bytes: number): string {
  const units = ['B', 'K', 'M', 'G', 'T', 'P'];
  if (bytes < 1024) return `${bytes}B`;
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${bytes.toFixed(2)}${units[unit]}`;
}

const seconds = (microseconds: number): string => (microseconds / 1e6).toFixed(6);
const percent = (part: number, whole: number): string =>
  `${(whole === 0 ? 0 : (part * 100) / whole).toFixed(2)}%`;

/** Text of the asked sections; none asked: the default ones. */
export function infoText(server: Server, asked: readonly string[]): string {
  // A section of the name of one below adds its lines to that one.
  const own = Object.keys(server.sections);
  const wanted = new Set<string>();
  const words = asked.length === 0 ? ['default'] : asked.map((word) => word.toLowerCase());
  for (const word of words) {
    if (word === 'default') for (const name of [...DEFAULT, ...own]) wanted.add(name);
    else if (word === 'all' || word === 'everything')
      for (const name of [...DEFAULT, ...ON_REQUEST, ...own]) wanted.add(name);
    else wanted.add(word);
  }
  const parts: string[] = [];
  for (const name of orderOfSections(own)) {
    if (!wanted.has(name)) continue;
    const fields = { ...section(server, name), ...server.sections[name]?.() };
    const title = name === 'cpu' ? 'CPU' : name[0].toUpperCase() + name.slice(1);
    const lines = Object.entries(fields).map(([field, value]) => `${field}:${value}\r\n`);
    parts.push(`# ${title}\r\n${lines.join('')}`);
  }
  return parts.join('\r\n');
}

function orderOfSections(own: readonly string[]): readonly string[] {
  const builtin: readonly string[] = DEFAULT;
  return [
    'server',
    'clients',
    'memory',
    'persistence',
    ...own.filter((name) => !builtin.includes(name)),
    'stats',
    'replication',
    'cpu',
    'modules',
    'commandstats',
    'errorstats',
    'latencystats',
    'cluster',
    'keyspace',
  ];
}

function section(server: Server, name: string): InfoFields {
  switch (name) {
    case 'server':
      return serverSection(server);
    case 'clients':
      return clientsSection(server);
    case 'memory':
      return memorySection(server);
    case 'persistence':
      return persistenceSection(server);
    case 'stats':
      return statsSection(server);
    case 'replication':
      return replicationSection(server);
    case 'cpu':
      return cpuSection();
    case 'commandstats':
      return commandSection(server);
    case 'errorstats':
      return errorSection(server);
    case 'latencystats':
      return latencySection(server);
    case 'cluster':
      return { cluster_enabled: 0 };
    case 'keyspace':
      return keyspaceSection(server);
    default:
      return {};
  }
}

function serverSection(server: Server): InfoFields {
  const uptime = Math.floor((Date.now() - server.statistics.startedAt) / 1000);
  const supervised = server.config.text('supervised');
  return {
    redis_version: REDIS_VERSION,
    redis_git_sha1: '00000000',
    redis_git_dirty: 0,
    redis_build_id: '0',
    redis_mode: 'standalone',
    ardent_version: VERSION,
    os: `${os.type()} ${os.release()} ${os.machine()}`,
    arch_bits: 64,
    multiplexing_api: process.platform === 'linux' ? 'epoll' : 'libuv',
    node_version: process.version,
    process_id: process.pid,
    process_supervised: supervised === 'auto' ? 'unknown' : supervised,
    run_id: server.runId,
    tcp_port: server.config.number('port'),
    server_time_usec: Date.now() * 1000,
    uptime_in_seconds: uptime,
    uptime_in_days: Math.floor(uptime / 86400),
    hz: server.config.number('hz'),
    configured_hz: server.config.number('hz'),
    lru_clock: Math.floor(Date.now() / 1000) & 0xffffff,
    executable: process.execPath,
    config_file: server.config.file ?? '',
    io_threads_active: 0,
  };
}

function clientsSection(server: Server): InfoFields {
  let input = 0;
  let output = 0;
  let waiting = 0;
  for (const client of server.clients.values()) {
    input = Math.max(input, client.reader.pending);
    output = Math.max(output, client.outputBytes);
    if (client.wait !== null && client.wait.deadline !== 0) waiting++;
  }
  return {
    connected_clients: server.clients.size,
    cluster_connections: 0,
    maxclients: server.config.number('maxclients'),
    client_recent_max_input_buffer: input,
    client_recent_max_output_buffer: output,
    blocked_clients: server.blocking.count + server.pause.postponed.size,
    tracking_clients: server.tracking.clientCount,
    clients_in_timeout_table: waiting,
  };
}

function memorySection(server: Server): InfoFields {
  const { used, limit, blocks, slabs, chunks, defragmenting } = server.store.memory;
  const process_ = process.memoryUsage();
  const resident = residentMemory();
  // Pages of mapped files are no fragments of anything.
  const held = resident?.anonymous ?? process_.rss;
  const peak = Math.max(server.statistics.peakMemory, used);
  let clients = 0;
  for (const client of server.clients.values()) clients += client.outputBytes + client.reader.capacity;
  return {
    used_memory: used,
    used_memory_human: humanSize(used),
    used_memory_rss: process_.rss,
    used_memory_rss_human: humanSize(process_.rss),
    used_memory_peak: peak,
    used_memory_peak_human: humanSize(peak),
    used_memory_peak_perc: percent(used, peak),
    used_memory_dataset: used,
    used_memory_heap: process_.heapUsed,
    used_memory_heap_total: process_.heapTotal,
    used_memory_external: process_.external,
    total_system_memory: os.totalmem(),
    total_system_memory_human: humanSize(os.totalmem()),
    maxmemory: limit,
    maxmemory_human: humanSize(limit),
    maxmemory_policy: server.config.text('maxmemory-policy'),
    allocator_allocated: blocks,
    allocator_active: slabs,
    allocator_resident: chunks,
    allocator_frag_ratio: ratio(slabs, blocks),
    allocator_frag_bytes: slabs - blocks,
    allocator_rss_ratio: ratio(chunks, slabs),
    allocator_rss_bytes: chunks - slabs,
    rss_overhead_ratio: ratio(held, chunks),
    rss_overhead_bytes: held - chunks,
    mem_fragmentation_ratio: ratio(held, used),
    mem_fragmentation_bytes: held - used,
    mem_not_counted_for_evict: 0,
    mem_clients_normal: clients,
    mem_log_buffer: server.effects?.capacity ?? 0,
    mem_allocator: 'arena',
    active_defrag_running: Number(defragmenting),
    lazyfree_pending_objects: 0,
    // What the process holds of its own, and what it only maps of files; where the system tells the two apart.
    ...(resident === null
      ? {}
      : { used_memory_anonymous: resident.anonymous, used_memory_file_backed: resident.fileBacked }),
  };
}

function ratio(a: number, b: number): string {
  return (b === 0 ? 0 : a / b).toFixed(2);
}

function persistenceSection(server: Server): InfoFields {
  const { loading } = server;
  const fields: InfoFields = {
    loading: loading === null ? 0 : 1,
    async_loading: 0,
    ...server.persistence.info(),
    ...server.importing.info(),
    aof_enabled: server.log === null ? 0 : 1,
    aof_rewrite_scheduled: 0,
    aof_last_write_status: server.logWriter.failing ? 'err' : 'ok',
  };
  if (loading !== null) {
    const elapsed = (Date.now() - loading.startedAt) / 1000;
    fields.loading_start_time = Math.floor(loading.startedAt / 1000);
    fields.loading_loaded_perc = (loading.fraction * 100).toFixed(2);
    fields.loading_eta_seconds =
      loading.fraction > 0 ? Math.ceil((elapsed * (1 - loading.fraction)) / loading.fraction) : 1;
  }
  return fields;
}

function statsSection(server: Server): InfoFields {
  const { statistics, pubsub, tracking, latency } = server;
  const fields: InfoFields = {
    total_connections_received: statistics.connectionsReceived,
    total_commands_processed: server.commandsProcessed(),
    instantaneous_ops_per_sec: Math.round(statistics.commandRate.value),
    total_net_input_bytes: statistics.inputBytes,
    total_net_output_bytes: statistics.outputBytes,
    instantaneous_input_kbps: (statistics.inputRate.value / 1024).toFixed(2),
    instantaneous_output_kbps: (statistics.outputRate.value / 1024).toFixed(2),
    rejected_connections: statistics.connectionsRejected,
    expired_keys: statistics.expiredKeys,
    evicted_keys: 0,
    keyspace_hits: statistics.keyspaceHits,
    keyspace_misses: statistics.keyspaceMisses,
    pubsub_channels: pubsub.channels.size,
    pubsub_patterns: pubsub.patterns.size,
    pubsubshard_channels: pubsub.shards.size,
    latest_fork_usec: 0,
    total_forks: 0,
    tracking_total_keys: tracking.keyCount,
    tracking_total_items: tracking.items,
    tracking_total_prefixes: tracking.prefixCount,
    active_defrag_hits: server.store.memory.movedBlocks,
    unexpected_error_replies: statistics.unexpectedErrors,
    total_error_replies: statistics.errorReplies,
    client_query_buffer_limit_disconnections: statistics.clientsClosedByQueryLimit,
    client_output_buffer_limit_disconnections: statistics.clientsClosedByOutputLimit,
  };
  for (const [kind, milliseconds] of latency.longestSlices)
    fields[`longest_slice_usec_${kind}`] = Math.round(milliseconds * 1000);
  for (const [kind, milliseconds] of latency.longestWork)
    fields[`longest_slice_cpu_usec_${kind}`] = Math.round(milliseconds * 1000);
  for (const [name, microseconds] of Object.entries(statistics.loopDelay.percentiles()))
    fields[`event_loop_delay_usec_${name}`] = microseconds;
  return fields;
}

function replicationSection(server: Server): InfoFields {
  return {
    role: 'master',
    connected_slaves: 0,
    master_failover_state: 'no-failover',
    master_replid: server.runId,
    master_replid2: '0'.repeat(40),
    master_repl_offset: server.log?.position ?? 0,
    second_repl_offset: -1,
    repl_backlog_active: 0,
    repl_backlog_size: server.config.number('repl-backlog-size'),
    repl_backlog_first_byte_offset: 0,
    repl_backlog_histlen: 0,
  };
}

function cpuSection(): InfoFields {
  const { user, system } = process.cpuUsage();
  return {
    used_cpu_sys: seconds(system),
    used_cpu_user: seconds(user),
    used_cpu_sys_children: seconds(0),
    used_cpu_user_children: seconds(0),
  };
}

function commandSection(server: Server): InfoFields {
  const fields: InfoFields = {};
  for (const { fullName, calls, microseconds, rejected, failed } of server.lookup.all()) {
    if (calls + rejected + failed === 0) continue;
    const each = calls === 0 ? 0 : microseconds / calls;
    fields[`cmdstat_${fullName}`] =
      `calls=${calls},usec=${Math.round(microseconds)},usec_per_call=${each.toFixed(2)}` +
      `,rejected_calls=${rejected},failed_calls=${failed}`;
  }
  return fields;
}

function errorSection(server: Server): InfoFields {
  const fields: InfoFields = {};
  for (const [code, count] of [...server.statistics.errors].sort())
    fields[`errorstat_${code.replace(/[#:\n\r]/g, '_')}`] = `count=${count}`;
  return fields;
}

function latencySection(server: Server): InfoFields {
  const fields: InfoFields = {};
  if (!server.config.flag('latency-tracking')) return fields;
  const percentiles = server.config.text('latency-tracking-info-percentiles').split(' ').filter(Boolean);
  for (const { fullName, histogram } of server.lookup.all()) {
    if (histogram === null) continue;
    fields[`latency_percentiles_usec_${fullName}`] = percentiles
      .map((wanted) => `p${wanted}=${histogram.percentile(Number(wanted)).toFixed(3)}`)
      .join(',');
  }
  return fields;
}

function keyspaceSection(server: Server): InfoFields {
  const fields: InfoFields = {};
  const { store } = server;
  for (let i = 0; i < store.databaseCount; i++) {
    const { size, expiring } = store.database(i);
    if (size > 0) fields[`db${i}`] = `keys=${size},expires=${expiring},avg_ttl=0`;
  }
  return fields;
}
