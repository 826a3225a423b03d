import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { formatSize, parseSize } from '../../src/bytes/size.ts';
import { ENGINE_NAMES } from '../../src/engines/engine.ts';
import { ENGINE_OPTIONS, formatValue, resolveOptions } from '../../src/engines/options.ts';

test('sizes are read in the units of redis.conf', () => {
  const sizes: [string, number][] = [
    ['0', 0],
    ['1234', 1234],
    ['5b', 5],
    ['1k', 1000],
    ['1kb', 1024],
    ['2M', 2_000_000],
    ['512mb', 512 * 1024 ** 2],
    ['3g', 3e9],
    ['3GB', 3 * 1024 ** 3],
    ['1t', 1e12],
    ['1tb', 1024 ** 4],
  ];
  for (const [text, bytes] of sizes) expect(parseSize(text), text).toBe(bytes);
  for (const text of ['', 'mb', '-1', '1.5gb', '1 mb', '1mbb', '1x', '99999999tb', '1e3']) {
    expect(parseSize(text), text).toBeUndefined();
  }
});

test('a size is written in the largest unit that is exact', () => {
  for (const text of ['0', '1000', '1kb', '1025', '33mb', '64gb', '2tb']) {
    expect(formatSize(parseSize(text)!)).toBe(text);
  }
});

test.each(ENGINE_NAMES)('%s: every default is valid, and reads back as it is written', (name) => {
  const defaults = resolveOptions(name, {});
  for (const spec of ENGINE_OPTIONS[name]) {
    expect(spec.name.startsWith(`${name}.`)).toBe(true);
    expect(defaults[spec.name]).toBe(spec.default);
    const text = formatValue(spec, spec.default);
    expect(resolveOptions(name, { [spec.name]: text })).toEqual(defaults);
  }
});

test('docs/engines.md lists every option as it is', () => {
  const page = readFileSync(new URL('../../docs/engines.md', import.meta.url), 'utf8');
  const rows = page.match(/^\| `(leveldb|lmdb|rocksdb)\.[a-z-]+` .*$/gm);
  const expected = ENGINE_NAMES.flatMap((name) =>
    ENGINE_OPTIONS[name].map(
      (spec) => `| \`${spec.name}\` | ${formatValue(spec, spec.default)} | ${spec.help} |`,
    ),
  );
  expect(rows?.map((row) => row.replace(/ +/g, ' '))).toEqual(expected);
});

test('an option out of its bounds, or of another engine, is refused', () => {
  const refused = (options: Record<string, string | number | boolean>): unknown => {
    try {
      return resolveOptions('leveldb', options);
    } catch (error) {
      return error;
    }
  };
  const small = refused({ 'leveldb.write-buffer-size': '1kb' });
  expect(String(small)).toContain('leveldb.write-buffer-size cannot be 1kb; it takes 64kb to 1gb');
  expect(String(refused({ 'leveldb.compression': 'maybe' }))).toContain('it takes yes or no');
  expect(refused({ 'lmdb.map-size': '1gb' })).toMatchObject({ code: 'ENGINE_OPTION' });
  expect(refused({ 'leveldb.max-open-files': NaN })).toMatchObject({ code: 'ENGINE_OPTION' });
});
