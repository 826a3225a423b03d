/** The core's commands beside a real Redis: every reply must be the same to the byte. */
import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connect, startPair, startServer, type Pair, type RawClient } from './harness.ts';
import { Config } from '../../src/server/config.ts';

let servers: Pair;
/** Connections of the test's own. */
let pair: Pair;
beforeAll(async () => {
  servers = await startPair({ config: new Config({ 'enable-debug-command': 'yes' }) });
});
afterAll(() => servers.stop());
beforeEach(async () => {
  await servers.compare(['FLUSHALL']);
  pair = await servers.another();
});
afterEach(() => {
  pair.ours.close();
  pair.theirs.close();
});

/** Both sides of `pair` do the same and must receive the same. */
async function both(act: (client: RawClient) => Promise<unknown>): Promise<void> {
  const [ours, theirs] = await Promise.all([act(pair.ours), act(pair.theirs)]);
  expect(ours).toEqual(theirs);
}

test('connection commands', async () => {
  await pair.compare([
    'PING',
    'ping hello',
    'PING a b',
    'ECHO x',
    'ECHO',
    'SELECT 3',
    'SELECT 16',
    'SELECT -1',
    'SELECT 2147483648',
    'SELECT -9223372036854775808',
    'SELECT 9223372036854775808',
    'SELECT x',
    'SELECT 0',
    'AUTH x',
    'AUTH default x',
    'AUTH nobody x',
    'AUTH a b c',
    'HELLO x',
    'HELLO 1',
    'HELLO 4',
    'HELLO 2 AUTH',
    'HELLO 2 SETNAME',
    ['HELLO', '2', 'SETNAME', 'a b'],
    'HELLO 2 FOO',
    'CLIENT SETNAME me',
    'CLIENT GETNAME',
    ['CLIENT', 'SETNAME', 'a b'],
    ['CLIENT', 'SETNAME', ''],
    'CLIENT GETNAME',
    'RESET',
    'MODULE LIST',
    'MODULE LIST x',
    'READONLY',
    'READWRITE',
    'CLUSTER INFO',
    'WAIT 0 10',
    'WAIT 1 20',
    'WAIT x 20',
    'WAIT 1 -1',
    'REPLICAOF NO ONE',
    'ACL WHOAMI',
    'ACL USERS',
    'ACL CAT',
    'ACL CAT nosuch',
  ]);
});

test('unknown commands and wrong numbers of arguments', async () => {
  await pair.compare([
    'nosuch',
    'nosuch a b c',
    ['nosuch\r\n', 'x'.repeat(300), 'y'],
    ['n'.repeat(200), 'x'],
    'GET',
    'GET a b',
    'CONFIG',
    'CONFIG NOSUCH',
    ['CONFIG', 'x'.repeat(200)],
    'CONFIG GET',
    'CONFIG SET a',
    'CLIENT',
    'CLIENT KILL',
    'OBJECT NOSUCH a',
    'COMMAND NOSUCH',
    'SLOWLOG GET a',
    'SLOWLOG GET -2',
    'SLOWLOG Get 1 2',
    'ACL Cat read 2',
    'COMMAND GETKEYS ZUNIONSTORE d 0 a',
    'COMMAND GETKEYS LMPOP 0 a LEFT',
    ['nul\0name', 'a\0b', '\0'],
    'PUBSUB NOSUCH',
  ]);
});

test('HELP', async () => {
  await pair.compare([
    'CLIENT HELP',
    'config help',
    'COMMAND HELP',
    'PUBSUB HELP',
    'SLOWLOG HELP',
    'LATENCY HELP',
    'MEMORY HELP',
    'CLIENT HELP me',
  ]);
});

describe('protocol', () => {
  const exchanges: [name: string, bytes: string][] = [
    ['inline commands', 'PING\r\nECHO "a b"\n  \r\nQUIT\r\n'],
    ['an unbalanced quote', 'PING\r\nECHO "a\r\n'],
    ['a wrong count', '*x\r\n'],
    ['a count that is too large', '*2147483648\r\n'],
    ['no bulk string', '*2\r\n$4\r\nECHO\r\n:1\r\n'],
    ['a wrong length', '*1\r\n$x\r\n'],
    ['a length that is too large', '*1\r\n$600000000\r\n'],
    ['requests before the error', '*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n*1\r\nx\r\n*1\r\n$4\r\nPING\r\n'],
    ['empty requests', '*0\r\n*-1\r\n\r\n*1\r\n$4\r\nQUIT\r\n'],
    ['an endless count', `*${'1'.repeat(70_000)}`],
    ['an endless inline request', 'x'.repeat(70_000)],
    ['HTTP', 'POST / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['QUIT drops what follows', 'PING\r\nQUIT\r\nPING\r\n'],
  ];
  test.each(exchanges)('%s', async (_name, bytes) => {
    const other = await pair.another();
    const [ours, theirs] = await Promise.all(
      [other.ours, other.theirs].map(async (client) => {
        client.write(bytes);
        return (await client.readToEnd()).toString('latin1');
      }),
    );
    expect(ours).toBe(theirs);
  });

  test('a peer that sends no more still gets its replies', async () => {
    await both(async () => {
      const client = await connect(pair.server.port);
      client.write('PING\r\nPING\r\n');
      client.end();
      return (await client.readToEnd()).toString();
    });
  });

  test('replies of every type in both versions', async () => {
    for (const version of [2, 3]) {
      await both(async (client) => {
        await client.send('HELLO', version);
        const replies: string[] = [];
        for (const type of ['string', 'integer', 'double', 'bignum', 'null', 'array', 'set', 'map'])
          replies.push(await client.send('DEBUG', 'PROTOCOL', type));
        for (const type of ['verbatim', 'true', 'false', 'nosuch'])
          replies.push(await client.send('DEBUG', 'PROTOCOL', type));
        return replies;
      });
    }
  });

  test('a request of 100,000 arguments and one of 20 MB', async () => {
    const value = 'v'.repeat(20 * 1024 * 1024);
    await both((client) => client.send('SET', 'long', value));
    await both(async (client) =>
      createHash('sha256')
        .update(await client.send('GET', 'long'))
        .digest('hex'),
    );
    await both((client) => client.send('DEL', ...Array.from({ length: 100_000 }, (_, i) => `k${i}`)));
  });
});

describe('transactions', () => {
  test('queueing, running, discarding', async () => {
    await pair.compare([
      'EXEC',
      'DISCARD',
      'MULTI',
      'MULTI',
      'SET a 1',
      'INCR a',
      'LPUSH a x',
      'GET a',
      'EXEC',
      'MULTI',
      'SET a 5',
      'DISCARD',
      'GET a',
      'MULTI',
      'NOSUCH',
      'EXEC',
      'MULTI',
      'GET',
      'SET a 6',
      'EXEC',
      'GET a',
      'MULTI',
      'WATCH a',
      'EXEC',
      'MULTI',
      'SELECT 2',
      'SET b 1',
      'SELECT 0',
      'EXEC',
      'GET b',
      'MULTI',
      'BLPOP none 0',
      'EXEC',
      'MULTI',
      'EXEC x',
      'EXEC',
      'MULTI',
      'PING',
      'EXEC',
    ]);
  });

  test('watched keys', async () => {
    const other = await pair.another();
    const attempt = ['MULTI', 'PING', 'EXEC'];
    await pair.compare(['SET a 1', 'WATCH a', ...attempt]);
    for (const change of ['SET a 2', 'DEL a', 'LPUSH l x', 'FLUSHALL', 'SWAPDB 0 1', 'SWAPDB 1 2']) {
      await pair.compare(['SET a 1', 'WATCH a l']);
      await other.compare([change]);
      await pair.compare(attempt);
      await other.compare(['FLUSHALL']);
    }
    await pair.compare(['SET a 1', 'WATCH a', 'UNWATCH']);
    await other.compare(['SET a 3']);
    await pair.compare(attempt);
    await pair.compare(['WATCH nosuch']);
    await other.compare(['FLUSHALL']);
    await pair.compare(attempt);
    await pair.compare(['SET a 1 PX 30', 'WATCH a']);
    await new Promise((resolve) => setTimeout(resolve, 60));
    await pair.compare(attempt);
  });
});

describe('publish and subscribe', () => {
  const subscriptions = [
    'SUBSCRIBE a',
    'PSUBSCRIBE a* [b]',
    'SSUBSCRIBE s',
    'GET a',
    'PING',
    'PING x',
    'UNSUBSCRIBE a',
    'UNSUBSCRIBE nosuch',
    'PUNSUBSCRIBE nosuch',
  ];

  test.each([2, 3])('subscriptions in RESP%d', async (version) => {
    await both(async (client) => {
      const got: string[] = [];
      await client.send('HELLO', version);
      for (const line of subscriptions) {
        const words = line.split(' ');
        got.push(await client.send(...words));
        for (let i = 2; i < words.length && words[0].endsWith('SUBSCRIBE'); i++)
          got.push((await client.read()).toString());
      }
      return got;
    });
  });

  test.each([2, 3])('messages in RESP%d', async (version) => {
    const other = await pair.another();
    await both(async (client) => {
      const publisher = client === pair.ours ? other.ours : other.theirs;
      const got: string[] = [];
      await client.send('HELLO', version);
      for (const command of [
        ['SUBSCRIBE', 'news'],
        ['PSUBSCRIBE', 'n*'],
        ['SSUBSCRIBE', 'news'],
      ])
        await client.send(...command);
      got.push(
        await publisher.send('PUBLISH', 'news', 'hello'),
        await publisher.send('SPUBLISH', 'news', 'x'),
      );
      got.push(await publisher.send('PUBLISH', 'none', ''));
      got.push((await client.read(version === 2 ? 4 : 4)).toString());
      got.push(
        await publisher.send('PUBSUB', 'CHANNELS'),
        await publisher.send('PUBSUB', 'NUMSUB', 'news', 'x'),
      );
      got.push(
        await publisher.send('PUBSUB', 'NUMPAT'),
        await publisher.send('PUBSUB', 'SHARDCHANNELS', 'n*'),
      );
      got.push(await publisher.send('PUBSUB', 'SHARDNUMSUB', 'news'));
      return got;
    });
  });

  test('one’s own message comes before the reply', async () => {
    await both(async (client) => {
      await client.send('HELLO', 3);
      await client.send('SUBSCRIBE', 'me');
      client.write('PUBLISH me x\r\nPING\r\n');
      return (await client.read(3)).toString();
    });
  });

  test('keyspace events', async () => {
    const other = await pair.another();
    await pair.compare(['CONFIG SET notify-keyspace-events KEA']);
    await both(async (client) => {
      const listener = client === pair.ours ? other.ours : other.theirs;
      await listener.send('PSUBSCRIBE', '__key*__:*');
      for (const line of ['SET k v', 'EXPIRE k 100', 'DEL k', 'LPUSH l a', 'RPOP l', 'SET gone x PX 1'])
        await client.send(...line.split(' '));
      await new Promise((resolve) => setTimeout(resolve, 20));
      await client.send('GET', 'gone');
      return (await listener.read(16)).toString();
    });
    await pair.compare([
      'CONFIG SET notify-keyspace-events KX',
      ['CONFIG', 'SET', 'notify-keyspace-events', ''],
      'CONFIG GET notify-keyspace-events',
    ]);
  });
});

describe('blocking', () => {
  test('CLIENT UNBLOCK with an error counts as a failed call', async () => {
    const other = await pair.another();
    await both(async (client) => {
      const waiting = client === pair.ours ? other.ours : other.theirs;
      const id = /:(\d+)/.exec(await waiting.send('CLIENT', 'ID'))![1];
      await client.send('CONFIG', 'RESETSTAT');
      waiting.write('BLPOP nothing 0\r\n');
      while ((await client.send('CLIENT', 'UNBLOCK', id, 'ERROR')) === ':0\r\n');
      await waiting.read();
      return /cmdstat_blpop:calls=1,.*(rejected_calls=.*)/.exec(
        await client.send('INFO', 'commandstats'),
      )?.[1];
    });
  });

  test('first come, first served; timeouts; CLIENT UNBLOCK', async () => {
    const [second, third] = [await pair.another(), await pair.another()];
    await both(async (client) => {
      const ours = client === pair.ours;
      const waiting = ours ? second.ours : second.theirs;
      const feeder = ours ? third.ours : third.theirs;
      const got: string[] = [];
      const id = /:(\d+)/.exec(await waiting.send('CLIENT', 'ID'))![1];
      client.write('BLPOP a b 0\r\nPING\r\n');
      await feeder.send('PING');
      waiting.write('BLPOP b a 0\r\n');
      await feeder.send('PING');
      got.push(await feeder.send('RPUSH', 'a', '1', '2'));
      got.push((await client.read(2)).toString(), (await waiting.read()).toString());
      waiting.write('BLPOP a 0\r\n');
      await feeder.send('PING');
      got.push(await feeder.send('CLIENT', 'UNBLOCK', id, 'ERROR'), (await waiting.read()).toString());
      waiting.write('BLPOP a 0\r\n');
      await feeder.send('PING');
      got.push(await feeder.send('CLIENT', 'UNBLOCK', id), (await waiting.read()).toString());
      got.push(await feeder.send('CLIENT', 'UNBLOCK', id), await feeder.send('CLIENT', 'UNBLOCK', id, 'X'));
      got.push(await waiting.send('BLPOP', 'a', '0.05'));
      waiting.write('BLMOVE a b LEFT RIGHT 0\r\n');
      client.write('BLPOP b 0\r\n');
      await feeder.send('PING');
      got.push(await feeder.send('RPUSH', 'a', 'x'));
      got.push((await waiting.read()).toString(), (await client.read()).toString());
      return got;
    });
  });
});

describe('CLIENT', () => {
  test('KILL, LIST and REPLY: options and errors', async () => {
    await pair.compare([
      'CLIENT KILL 1.2.3.4:5',
      'CLIENT KILL ID x',
      'CLIENT KILL ID 0',
      'CLIENT KILL ID 999999',
      'CLIENT KILL ID 9223372036854775807',
      'CLIENT KILL ID 9223372036854775808',
      'CLIENT KILL ID -9223372036854775808',
      'CLIENT PAUSE 9223372036854775807 WRITE',
      'CLIENT UNPAUSE',
      'CLIENT PAUSE 9223372036854775808 WRITE',
      'CLIENT KILL TYPE x',
      'CLIENT KILL SKIPME x',
      'CLIENT KILL USER x',
      'CLIENT KILL NOSUCH x',
      'CLIENT KILL ID',
      'CLIENT LIST TYPE x',
      'CLIENT LIST ID x',
      'CLIENT LIST ID 999999',
      'CLIENT LIST ID 9223372036854775807',
      'CLIENT LIST ID 9223372036854775808',
      'CLIENT LIST NOSUCH',
      'CLIENT REPLY x',
      'CLIENT REPLY ON',
      'CLIENT NO-EVICT on',
      'CLIENT NO-EVICT x',
      'CLIENT PAUSE x',
      'CLIENT PAUSE -1',
      'CLIENT PAUSE 1 X',
      'CLIENT UNPAUSE',
      'CLIENT GETREDIR',
      'CLIENT TRACKINGINFO',
    ]);
  });

  test('REPLY SKIP and OFF', async () => {
    await both(async (client) => {
      client.write(
        'CLIENT REPLY SKIP\r\nSET a 1\r\nGET a\r\nCLIENT REPLY OFF\r\nGET a\r\nNOSUCH\r\nCLIENT REPLY ON\r\nGET a\r\n',
      );
      return (await client.read(3)).toString();
    });
  });

  test('REPLY SKIP and OFF take the reply of a command that waits, and no more than one command', async () => {
    const other = await pair.another();
    await both(async (client) => {
      const feeder = client === pair.ours ? other.ours : other.theirs;
      const got: string[] = [];
      client.write('CLIENT REPLY SKIP\r\nBLPOP none 0.01\r\nECHO timeout\r\n');
      got.push((await client.read()).toString());
      for (const [key, end] of [
        ['l', ['RPUSH', 'l', 'x', 'y']],
        ['s', ['CLIENT', 'UNBLOCK', '', 'ERROR']],
      ] as const) {
        const id = (await client.send('CLIENT', 'ID')).slice(1, -2);
        client.write(`CLIENT REPLY SKIP\r\nBLPOP ${key} 0\r\nECHO served\r\n`);
        let reply: string;
        // UNBLOCK finds nobody until the command has come.
        do reply = await feeder.send(...end.map((word) => (word === '' ? id : word)));
        while (key === 's' && reply === ':0\r\n');
        got.push(reply, (await client.read()).toString(), await feeder.send('LRANGE', 'l', 0, -1));
      }
      client.write('CLIENT REPLY OFF\r\nBLPOP l 0\r\nSUBSCRIBE c\r\nRESET\r\n');
      got.push((await client.read(2)).toString());
      client.write('CLIENT REPLY SKIP\r\nSUBSCRIBE c\r\nPING\r\nUNSUBSCRIBE\r\n');
      got.push((await client.read(3)).toString());
      client.write('CLIENT REPLY SKIP\r\nCONFIG SET maxclients 5000\r\nECHO set\r\n');
      got.push((await client.read()).toString());
      return got;
    });
  });

  test('PAUSE WRITE holds back writes, and what follows them on their connection', async () => {
    const other = await pair.another();
    await both(async (client) => {
      const writer = client === pair.ours ? other.ours : other.theirs;
      const got = [await client.send('CLIENT', 'PAUSE', 60_000, 'WRITE')];
      writer.write('GET a\r\nSET a 1\r\nGET a\r\n');
      got.push((await writer.read()).toString(), await client.send('GET', 'a'));
      got.push(await client.send('CLIENT', 'UNPAUSE'), (await writer.read(2)).toString());
      return got;
    });
  });

  test('LIST has Redis’s fields in Redis’s order', async () => {
    await both(async (client) => {
      const line = await client.send('CLIENT', 'INFO');
      return [...line.matchAll(/(\S+)=/g)].map((field) => field[1]);
    });
  });
});

describe('client-side caching', () => {
  test('options', async () => {
    await pair.compare([
      'CLIENT TRACKING',
      'CLIENT TRACKING x',
      'CLIENT TRACKING on x',
      'CLIENT TRACKING on PREFIX a',
      'CLIENT TRACKING on BCAST OPTIN',
      'CLIENT TRACKING on OPTIN OPTOUT',
      'CLIENT TRACKING on REDIRECT 999999',
      'CLIENT TRACKING on REDIRECT 9223372036854775807',
      'CLIENT TRACKING on BCAST PREFIX ab PREFIX a',
      'CLIENT TRACKING on BCAST PREFIX a',
      'CLIENT TRACKINGINFO',
      'CLIENT TRACKING on BCAST PREFIX ab',
      'CLIENT TRACKING on',
      'CLIENT TRACKING off',
      'CLIENT CACHING yes',
      'CLIENT TRACKING on OPTIN',
      'CLIENT CACHING no',
      'CLIENT CACHING x',
      'CLIENT CACHING yes',
      'CLIENT TRACKINGINFO',
      'CLIENT TRACKING on OPTOUT',
      'CLIENT TRACKING off',
    ]);
  });

  test('a client that waited hears of its own change after the reply', async () => {
    const other = await pair.another();
    await both(async (client) => {
      const feeder = client === pair.ours ? other.ours : other.theirs;
      await feeder.send('RPUSH', 'to', 'a');
      await client.send('HELLO', 3);
      await client.send('CLIENT', 'TRACKING', 'on');
      await client.send('LRANGE', 'to', 0, -1);
      client.write('BLMOVE from to LEFT LEFT 0\r\n');
      await feeder.send('PING');
      await feeder.send('RPUSH', 'from', 'x');
      return (await client.read(2)).toString();
    });
  });

  test('a transaction is not interleaved with what it invalidates', async () => {
    await both(async (client) => {
      await client.send('HELLO', 3);
      await client.send('CLIENT', 'TRACKING', 'on');
      await client.send('SET', 'a', 1);
      await client.send('GET', 'a');
      client.write('MULTI\r\nSET a 2\r\nFLUSHALL\r\nGET a\r\nEXEC\r\n');
      return (await client.read(7)).toString();
    });
  });

  test('what a transaction reads after its own changes is remembered', async () => {
    const other = await pair.another();
    await both(async (client) => {
      const writer = client === pair.ours ? other.ours : other.theirs;
      const got: string[] = [];
      await client.send('HELLO', 3);
      for (const option of ['OPTOUT', 'NOLOOP']) {
        await client.send('CLIENT', 'TRACKING', 'on', option);
        client.write('MULTI\r\nSET a 1\r\nGET a\r\nEXEC\r\n');
        got.push((await client.read(4)).toString());
        await writer.send('DEL', 'a');
        got.push((await client.read()).toString());
        await client.send('CLIENT', 'TRACKING', 'off');
      }
      return got;
    });
  });

  test('invalidations', async () => {
    const other = await pair.another();
    await both(async (client) => {
      const writer = client === pair.ours ? other.ours : other.theirs;
      const got: string[] = [];
      await client.send('HELLO', 3);
      await client.send('CLIENT', 'TRACKING', 'on');
      await client.send('GET', 'a');
      await writer.send('SET', 'a', 1);
      got.push((await client.read()).toString());
      await client.send('MGET', 'a', 'b');
      client.write('SET a 2\r\n');
      got.push((await client.read(2)).toString());
      await writer.send('FLUSHALL');
      got.push((await client.read()).toString());
      await client.send('CLIENT', 'TRACKING', 'off');
      await client.send('CLIENT', 'TRACKING', 'on', 'BCAST', 'PREFIX', 'x:', 'NOLOOP');
      await client.send('SET', 'x:own', 1);
      await writer.send('SET', 'y:other', 1);
      await writer.send('SET', 'x:other', 1);
      got.push((await client.read()).toString());
      return got;
    });
  });

  test('keys that the table has no room for are invalidated, also for NOLOOP clients', async () => {
    const client = pair.ours;
    await client.send('HELLO', 3);
    await client.send('CLIENT', 'TRACKING', 'on', 'NOLOOP');
    await client.send('MGET', 'a', 'b');
    const invalidated = (key: string): string => `>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\n${key}\r\n`;
    try {
      client.write('CONFIG SET tracking-table-max-keys 1\r\n');
      expect((await client.read(2)).toString()).toBe(`+OK\r\n${invalidated('a')}`);
      client.write('GET c\r\n');
      expect((await client.read(2)).toString()).toBe(`_\r\n${invalidated('b')}`);
    } finally {
      await client.send('CONFIG', 'SET', 'tracking-table-max-keys', 1_000_000);
    }
  });
});

describe('CONFIG', () => {
  test('GET and SET', async () => {
    await pair.compare([
      'CONFIG GET nosuch',
      'CONFIG GET maxclients',
      'CONFIG GET MAXCLIENTS',
      'CONFIG SET nosuch 1',
      'CONFIG SET maxclients x',
      'CONFIG SET maxclients 0',
      'CONFIG SET timeout -1',
      'CONFIG SET timeout 5 timeout 6',
      'CONFIG SET timeout 5 nosuch 6',
      'CONFIG SET timeout 5 maxclients x',
      'CONFIG GET timeout',
      'CONFIG SET timeout 5 slowlog-max-len 10',
      'CONFIG GET slowlog-max-len',
      'CONFIG SET timeout 0 slowlog-max-len 128',
      'CONFIG SET daemonize yes',
      'CONFIG SET hz 1000',
      'CONFIG GET hz',
      'CONFIG SET hz 0',
      'CONFIG GET hz',
      'CONFIG SET hz 10',
      'CONFIG SET dbfilename x',
      'CONFIG SET proto-max-bulk-len 1mb',
      'CONFIG SET proto-max-bulk-len 1kb',
      'CONFIG GET proto-max-bulk-len',
      'CONFIG SET proto-max-bulk-len 512mb',
      'CONFIG SET proto-max-bulk-len x',
      'CONFIG SET appendfsync x',
      'CONFIG SET appendfsync EVERYSEC',
      'CONFIG SET activerehashing maybe',
      'CONFIG SET lazyfree-lazy-expire yes',
      'CONFIG SET lazyfree-lazy-expire no',
      ['CONFIG', 'SET', 'save', '900 1 300 10'],
      'CONFIG GET save',
      ['CONFIG', 'SET', 'save', '900'],
      ['CONFIG', 'SET', 'save', ''],
      ['CONFIG', 'SET', 'client-output-buffer-limit', 'normal 10mb 5mb 60 replica 0 0 0'],
      'CONFIG GET client-output-buffer-limit',
      ['CONFIG', 'SET', 'client-output-buffer-limit', 'normal 10mb 5mb'],
      ['CONFIG', 'SET', 'client-output-buffer-limit', 'wrong 0 0 0'],
      ['CONFIG', 'SET', 'client-output-buffer-limit', 'normal x 0 0'],
      ['CONFIG', 'SET', 'client-output-buffer-limit', 'normal 0 0 0 slave 268435456 67108864 60'],
      ['CONFIG', 'SET', 'latency-tracking-info-percentiles', '50 200'],
      ['CONFIG', 'SET', 'latency-tracking-info-percentiles', 'a'],
      'CONFIG GET maxmemory-clients',
      'CONFIG SET maxmemory-clients 5%',
      'CONFIG GET maxmemory-clients',
      'CONFIG SET maxmemory-clients 200%',
      'CONFIG SET maxmemory-clients 0',
      'CONFIG SET hash-max-ziplist-entries 100',
      'CONFIG GET hash-max-listpack-entries',
      'CONFIG SET hash-max-listpack-entries 512',
      'CONFIG REWRITE',
      'CONFIG RESETSTAT',
    ]);
  });

  test('parameters that both have, have the same defaults', async () => {
    const read = async (client: RawClient): Promise<Map<string, string>> => {
      client.write('CONFIG GET *\r\n');
      const words = (await client.read()).toString('latin1').split('\r\n').slice(1);
      const values = words.filter((_, i) => i % 2 === 1);
      return new Map(
        values.flatMap((name, i) => (i % 2 === 0 ? [[name, values[i + 1]]] : [])) as [string, string][],
      );
    };
    const [ours, theirs] = [await read(pair.ours), await read(pair.theirs)];
    // Where the server is, and what is another thing here.
    const differ = new Set(['port', 'bind', 'dir', 'appendonly', 'proc-title-template']);
    for (const [name, value] of ours)
      if (theirs.has(name) && !differ.has(name))
        expect(`${name} ${value}`).toBe(`${name} ${theirs.get(name)}`);
  });
});

test('COMMAND tells the same of every command of the core', async () => {
  const groups = new Set(['connection', 'pubsub', 'transactions', 'server']);
  const core = [...pair.server.server.lookup.all()].filter(({ command }) => groups.has(command.group));
  // Without what Redis does not have, or has more of.
  const names = core
    .map(({ fullName }) => fullName)
    .filter((name) => !/^((acl|debug|import|backup)\b|(module|save)$)/.test(name));
  expect(names.length).toBeGreaterThan(80);
  const replied = (text: string): unknown[] => text.split('\r\n');
  for (const name of names) {
    const [ours, theirs] = await Promise.all([
      pair.ours.send('COMMAND', 'INFO', name),
      pair.theirs.send('COMMAND', 'INFO', name),
    ]);
    const isContainer = ours.includes(`${name}|`);
    // The order of subcommands is that of Redis's hash table.
    if (isContainer) expect(replied(ours).sort(), name).toEqual(replied(theirs).sort());
    else expect(`${name} ${ours}`).toBe(`${name} ${theirs}`);
  }
  await pair.compare([
    'COMMAND INFO nosuch get',
    'COMMAND INFO config|nosuch',
    'COMMAND GETKEYS',
    'COMMAND GETKEYS nosuch a',
    'COMMAND GETKEYS PING a',
    'COMMAND GETKEYS GET a b',
    'COMMAND GETKEYS GET a',
    'COMMAND GETKEYS MSET a 1 b 2',
    'COMMAND GETKEYS SINTERCARD 2 a b LIMIT 1',
    'COMMAND GETKEYS MEMORY USAGE a',
    'COMMAND GETKEYSANDFLAGS MSET a 1 b 2',
    'COMMAND GETKEYSANDFLAGS LMOVE a b LEFT RIGHT',
    'COMMAND LIST FILTERBY MODULE x',
    'COMMAND LIST FILTERBY PATTERN get*x',
    'COMMAND LIST FILTERBY NOSUCH x',
    'COMMAND LIST x',
  ]);
});

test('databases', async () => {
  await pair.compare([
    'SET a 1',
    'DBSIZE',
    'SWAPDB 0 1',
    'GET a',
    'SELECT 1',
    'GET a',
    'SWAPDB 0 99',
    'SWAPDB x 0',
    'SWAPDB 0 x',
    'FLUSHDB x',
    'FLUSHDB SYNC x',
    'FLUSHDB ASYNC',
    'DBSIZE',
    'FLUSHALL SYNC',
    'FLUSHALL x',
  ]);
});

test('what a transaction may not do, and what ACL says of the one user', async () => {
  await pair.compare(['MULTI', 'MONITOR', 'PING', 'EXEC', 'ACL LIST', 'ACL GENPASS x', 'ACL GENPASS 0']);
});

test('SLOWLOG, LATENCY, MEMORY, MONITOR', async () => {
  await pair.compare([
    'CONFIG SET slowlog-log-slower-than -1',
    'SLOWLOG RESET',
    'SLOWLOG LEN',
    'SLOWLOG GET',
    'LATENCY LATEST',
    'LATENCY HISTORY x',
    'LATENCY RESET',
    'LATENCY GRAPH x',
    'LATENCY HISTOGRAM nosuch',
    'MEMORY USAGE nosuch',
    'MEMORY USAGE nosuch SAMPLES x',
    'MEMORY USAGE nosuch SAMPLES',
    'MEMORY USAGE nosuch X 1',
    'DEBUG SLEEP 0',
    'DEBUG SET-ACTIVE-EXPIRE 1',
    ['DEBUG', 'ERROR', 'TEST some text'],
    'DEBUG OBJECT nosuch',
    'SHUTDOWN x',
    'SHUTDOWN SAVE NOSAVE',
    'SHUTDOWN ABORT',
  ]);
  await pair.compare([
    'CONFIG SET slowlog-log-slower-than 0',
    'SET secret x',
    'CONFIG SET slowlog-log-slower-than 10000',
  ]);
  await both(async (client) => {
    const entries = await client.send('SLOWLOG', 'GET');
    return /\*3\r\n\$3\r\nSET\r\n\$6\r\nsecret\r\n\$1\r\nx\r\n/.test(entries);
  });
  const [ours, theirs] = await Promise.all(
    [pair.ours, pair.theirs].map(async (client) =>
      (await client.send('MEMORY', 'STATS')).match(/^[a-z].*\w/gm)!,
    ),
  );
  expect(ours).toEqual(
    expect.arrayContaining(theirs.filter((name) => !/^(db|overhead\.hashtable)\./.test(name))),
  );
  const other = await pair.another();
  await both(async (client) => {
    const watcher = client === pair.ours ? other.ours : other.theirs;
    await watcher.send('MONITOR');
    for (const command of [
      ['SET', 'a', 'b "c"\n\x01'],
      ['MULTI'],
      ['GET', 'a'],
      ['EXEC'],
      ['CONFIG', 'GET', 'port'],
    ])
      await client.send(...command);
    const lines = (await watcher.read(4)).toString('latin1');
    const normal = await client.send('CLIENT', 'LIST', 'TYPE', 'normal');
    return [lines.replace(/\+[0-9.]+ \[0 [0-9.:]+\]/g, ''), normal.includes('cmd=monitor')];
  });
});

describe('access', () => {
  test('a password is asked for, in Redis’s words', async () => {
    const locked = await startPair({ config: new Config({ requirepass: 'secret' }) }, [
      '--requirepass',
      'secret',
    ]);
    try {
      await locked.compare([
        'PING',
        'GET a',
        'NOSUCH',
        'HELLO 3',
        'AUTH wrong',
        'AUTH other secret',
        'AUTH secret',
        'PING',
        'RESET',
        'PING',
        'AUTH default secret',
        'PING',
      ]);
      await expect(
        locked.ours.send('RESET', ...Array.from({ length: 12 }, () => 'x')),
      ).resolves.toBeDefined();
    } finally {
      await locked.stop();
    }
  });

  test('maxclients', async () => {
    const running = await startServer({ config: new Config({ maxclients: '1' }) });
    const first = await connect(running.port);
    try {
      await first.send('PING');
      const second = await connect(running.port);
      expect((await second.readToEnd()).toString()).toBe('-ERR max number of clients reached\r\n');
    } finally {
      first.close();
      await running.stop();
    }
  });

  test('an idle client is closed after the timeout, a subscriber is not', async () => {
    const running = await startServer({ config: new Config({ timeout: '1' }) });
    const [idle, subscriber] = [await connect(running.port), await connect(running.port)];
    try {
      await subscriber.send('SUBSCRIBE', 'a');
      expect((await idle.readToEnd(8000)).length).toBe(0);
      expect(subscriber.ended).toBe(false);
    } finally {
      subscriber.close();
      await running.stop();
    }
  });

  test('a reply above the hard limit is not sent', async () => {
    const setter = await pair.another();
    await both(async (client) => {
      const other = client === pair.ours ? setter.ours : setter.theirs;
      await other.send('SET', 'big', 'x'.repeat(30_000));
      await other.send('CONFIG', 'SET', 'client-output-buffer-limit', 'normal 50000 0 0');
      try {
        const first = await client.send('GET', 'big');
        client.write('MULTI\r\nSET after 1\r\nGET big\r\nGET big\r\nGET big\r\nEXEC\r\n');
        const rest = (await client.readToEnd()).toString().replace(/^(\+OK\r\n)?(\+QUEUED\r\n)*/, '');
        return [first, rest, await other.send('GET', 'after')];
      } finally {
        await other.send('CONFIG', 'SET', 'client-output-buffer-limit', 'normal 0 0 0');
      }
    });
  });

  test('a client that does not read is closed at its output limit', async () => {
    const limit = { 'client-output-buffer-limit': 'pubsub 1mb 0 0' };
    const running = await startServer({ config: new Config(limit) });
    const [deaf, publisher] = [await connect(running.port), await connect(running.port)];
    try {
      await deaf.send('SUBSCRIBE', 'a');
      deaf.pause();
      const message = 'x'.repeat(256 * 1024);
      let reached = ':1\r\n';
      for (let i = 0; i < 200 && reached === ':1\r\n'; i++)
        reached = await publisher.send('PUBLISH', 'a', message);
      expect(reached).toBe(':0\r\n');
    } finally {
      deaf.close();
      publisher.close();
      await running.stop();
    }
  });
});
