/** Commands that need more than the memory holds, none of it in memory: how many fetches does each take? */

const QUEUED = 10_000;
const OTHER_MEMBERS = 1000;
/** Fetches that are enough for any number of keys, and for the pages of a collection of any size that can be borrowed for. */
const KEYS_ROUNDS_MAX = 10;
const PAGES_ROUNDS_MAX = 50;

const memberOf = (i) => `other:${i}`;
const range = (n) => Array.from({ length: n }, (_, i) => i);

/**
 * @param client for the commands themselves; large replies are welcome to it
 * @param large a Large that has been loaded, with a set and a list
 * @param keyOf the name of the i-th of `keys` keys
 * @returns for each command its name, fetches, the most there may be, rows fetched, ms, and whether the reply was right
 */
export async function wideCommands(server, client, large, keys, keyOf) {
  const { set, list } = large.sizes;
  const others = range(OTHER_MEMBERS).map(memberOf);
  await client.call('SADD', 'large other', ...others);

  const results = [];
  async function counted(name, roundsMax, run) {
    const before = await server.control.info();
    const began = performance.now();
    const right = await run();
    const ms = performance.now() - began;
    const after = await server.control.info();
    const grown = (field) => Number(after[field]) - Number(before[field]);
    results.push({
      ...{ name, right, ms, roundsMax },
      rounds: grown('tier_fetch_rounds'),
      rows: grown('tier_fetched_rows'),
    });
  }

  await counted(`EXEC of ${QUEUED} GETs`, KEYS_ROUNDS_MAX, async () => {
    await client.call('MULTI');
    const queue = range(QUEUED).map(() => client.call('GET', keyOf(Math.floor(Math.random() * keys))));
    const replies = await Promise.all(queue);
    const values = await client.call('EXEC');
    return replies.every((reply) => reply === 'QUEUED') && values.every((value) => typeof value === 'string');
  });
  await counted(`SUNIONSTORE of ${set} members`, PAGES_ROUNDS_MAX, async () => {
    const reply = await client.call('SUNIONSTORE', 'large union', 'large set', 'large other');
    return reply === set + OTHER_MEMBERS;
  });
  await counted(`LRANGE 0 -1 of ${list} elements`, PAGES_ROUNDS_MAX, async () => {
    const reply = await client.call('LRANGE', 'large list', 0, -1);
    return reply.length === list;
  });
  await client.call('UNLINK', 'large union', 'large other');
  return results;
}

export const wideHolds = (results) =>
  results.every(({ right, rounds, roundsMax }) => right && rounds <= roundsMax);
