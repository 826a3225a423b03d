import { expect, it } from 'vitest';
import { ReplyKind, ReplyScanner, ScannedReplies } from '../../src/resp/reply-scanner.ts';
import { Random } from '../../src/workloads/random.ts';
import { SEED } from '../seed.ts';

console.log(`SEED=${SEED}`);

function scan(bytes: Buffer, cuts: number[]): { kinds: number[]; ends: number[]; idle: boolean } {
  const found = new ScannedReplies(bytes.length);
  const scanner = new ReplyScanner(found);
  const kinds: number[] = [];
  const ends: number[] = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    // Each chunk lies at the start of a memory of its own, as in a read buffer.
    const chunk = Buffer.from(bytes.subarray(from, to));
    const replies = scanner.scan(chunk, 0, chunk.length);
    let unusual = 0;
    for (let i = 0; i < replies; i++) {
      kinds.push(found.kinds[i]);
      ends.push(from + found.ends[i]);
      if (found.kinds[i] !== ReplyKind.Value) unusual++;
    }
    expect(scanner.unusual).toBe(unusual);
    from = to;
  }
  return { kinds, ends, idle: scanner.idle };
}

const { Value, Error: Err, Null, Empty } = ReplyKind;
const CASES: [string, number][] = [
  ['+OK\r\n', Value],
  ['-ERR no\r\n', Err],
  ['!5\r\nERR x\r\n', Err],
  [':-12\r\n', Value],
  ['$3\r\nab\n\r\n', Value],
  ['$0\r\n\r\n', Value],
  ['$-1\r\n', Null],
  ['*-1\r\n', Null],
  ['_\r\n', Null],
  ['*0\r\n', Empty],
  ['%0\r\n', Empty],
  ['~0\r\n', Empty],
  ['*2\r\n$1\r\na\r\n$-1\r\n', Value],
  ['*1\r\n*0\r\n', Value],
  ['*2\r\n-ERR inner\r\n+x\r\n', Value],
  ['%1\r\n+k\r\n*2\r\n:1\r\n,1.5\r\n', Value],
  ['#t\r\n', Value],
  ['(123456789012345678901234567890\r\n', Value],
  ['=7\r\ntxt:abc\r\n', Value],
  ['|1\r\n+ttl\r\n:3600\r\n+value\r\n', Value],
];

it.each(CASES)('%j', (reply, kind) => {
  expect(scan(Buffer.from(reply), [])).toEqual({ kinds: [kind], ends: [reply.length], idle: true });
  // One byte at a time.
  const cuts = Array.from({ length: reply.length - 1 }, (_, i) => i + 1);
  expect(scan(Buffer.from(reply), cuts)).toEqual({ kinds: [kind], ends: [reply.length], idle: true });
});

it('any sequence, cut anywhere', () => {
  const random = new Random(SEED);
  for (let round = 0; round < 300; round++) {
    const chosen = Array.from({ length: 1 + random.below(20) }, () => CASES[random.below(CASES.length)]);
    const bytes = Buffer.from(chosen.map(([reply]) => reply).join(''));
    const cuts = Array.from({ length: random.below(6) }, () => random.below(bytes.length)).sort(
      (a, b) => a - b,
    );
    const { kinds, ends, idle } = scan(bytes, cuts);
    expect(kinds).toEqual(chosen.map(([, kind]) => kind));
    expect(ends.at(-1)).toBe(bytes.length);
    expect(idle).toBe(true);
  }
});

it('a reply that has not ended is not counted', () => {
  expect(scan(Buffer.from('$5\r\nhel'), [])).toEqual({ kinds: [], ends: [], idle: false });
});

it('the place of an error’s text is told', () => {
  const scanner = new ReplyScanner(new ScannedReplies(64));
  const bytes = Buffer.from('+OK\r\n-ERR first\r\n-ERR second\r\n');
  scanner.scan(bytes, 0, bytes.length);
  expect(bytes.toString('latin1', scanner.errorAt).startsWith('ERR first')).toBe(true);
});
