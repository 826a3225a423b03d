/**
 * CRC-64 of RDB files and DUMP payloads: the polynomial by David Jones, 0xad93d23594c935a9, bits
 * reflected, start value 0, no final inversion. `123456789` gives e9c6d914c4b8d9ca.
 *
 * Eight bytes a step by eight tables (slicing-by-8). A 64-bit number is two 32-bit halves, low and
 * high, side by side in one table, since JavaScript has no fast 64-bit integer.
 */
const POLYNOMIAL_LOW = 0xac4bc9b5 | 0;
const POLYNOMIAL_HIGH = 0x95ac9329 | 0;

/** Entry `b` of table `k` lies at `(k * 256 + b) * 2`: low half, high half. */
const TABLES = makeTables();

function makeTables(): Int32Array {
  const tables = new Int32Array(8 * 256 * 2);
  for (let b = 0; b < 256; b++) {
    let low = b;
    let high = 0;
    for (let bit = 0; bit < 8; bit++) {
      const odd = low & 1;
      low = (low >>> 1) | (high << 31);
      high >>>= 1;
      if (odd !== 0) {
        low ^= POLYNOMIAL_LOW;
        high ^= POLYNOMIAL_HIGH;
      }
    }
    tables[b * 2] = low;
    tables[b * 2 + 1] = high;
  }
  for (let i = 256 * 2; i < tables.length; i += 2) {
    const low = tables[i - 512];
    const high = tables[i - 511];
    const first = (low & 0xff) << 1;
    tables[i] = tables[first] ^ ((low >>> 8) | (high << 24));
    tables[i + 1] = tables[first + 1] ^ (high >>> 8);
  }
  return tables;
}

/** A checksum that grows with the bytes it is given. */
export class Crc64 {
  low = 0;
  high = 0;

  reset(): void {
    this.low = 0;
    this.high = 0;
  }

  /** Takes bytes [start, end) of `u8`; `view` covers the same memory from the same place. */
  update(u8: Uint8Array, view: DataView, start: number, end: number): void {
    const t = TABLES;
    let low = this.low;
    let high = this.high;
    let pos = start;
    for (const last = end - 8; pos <= last; pos += 8) {
      const a = low ^ view.getInt32(pos, true);
      const b = high ^ view.getInt32(pos + 4, true);
      const i0 = 3584 + ((a & 0xff) << 1);
      const i1 = 3072 + ((a >>> 7) & 0x1fe);
      const i2 = 2560 + ((a >>> 15) & 0x1fe);
      const i3 = 2048 + ((a >>> 23) & 0x1fe);
      const i4 = 1536 + ((b & 0xff) << 1);
      const i5 = 1024 + ((b >>> 7) & 0x1fe);
      const i6 = 512 + ((b >>> 15) & 0x1fe);
      const i7 = (b >>> 23) & 0x1fe;
      low = t[i0] ^ t[i1] ^ t[i2] ^ t[i3] ^ t[i4] ^ t[i5] ^ t[i6] ^ t[i7];
      high = t[i0 + 1] ^ t[i1 + 1] ^ t[i2 + 1] ^ t[i3 + 1] ^ t[i4 + 1] ^ t[i5 + 1] ^ t[i6 + 1] ^ t[i7 + 1];
    }
    for (; pos < end; pos++) {
      const i = ((low ^ u8[pos]) & 0xff) << 1;
      low = ((low >>> 8) | (high << 24)) ^ t[i];
      high = (high >>> 8) ^ t[i + 1];
    }
    this.low = low;
    this.high = high;
  }

  /**
   * What the checksum becomes when bytes that were zero are replaced by `u8`, `after` bytes before the
   * end of what was taken.
   */
  addPatch(u8: Uint8Array, view: DataView, after: number): void {
    const patch = new Crc64();
    patch.update(u8, view, 0, u8.length);
    let value = (BigInt(patch.high >>> 0) << 32n) | BigInt(patch.low >>> 0);
    for (let power = 0; after > 0; power++) {
      if (after % 2 === 1) value = multiply(zeroBytes(power), value);
      after = Math.floor(after / 2);
    }
    this.low ^= Number(value & 0xffffffffn);
    this.high ^= Number(value >> 32n);
  }

  /** The checksum as it stands in a file: 16 hexadecimal digits, highest first. */
  toString(): string {
    return (this.high >>> 0).toString(16).padStart(8, '0') + (this.low >>> 0).toString(16).padStart(8, '0');
  }
}

/**
 * What appending zero bytes does to a checksum is linear: 64 columns, the images of the single bits.
 * Entry `power` stands for 2^power bytes.
 */
const operators: BigUint64Array[] = [];

function zeroBytes(power: number): BigUint64Array {
  for (let next = operators.length; next <= power; next++) {
    const columns = new BigUint64Array(64);
    for (let bit = 0; bit < 64; bit++) {
      const unit = 1n << BigInt(bit);
      if (next > 0) {
        columns[bit] = multiply(operators[next - 1], multiply(operators[next - 1], unit));
      } else {
        const entry = Number(unit & 0xffn) * 2;
        const image = (BigInt(TABLES[entry + 1] >>> 0) << 32n) | BigInt(TABLES[entry] >>> 0);
        columns[bit] = image ^ (unit >> 8n);
      }
    }
    operators.push(columns);
  }
  return operators[power];
}

function multiply(columns: BigUint64Array, value: bigint): bigint {
  let product = 0n;
  for (let bit = 0; value > 0n; bit++, value >>= 1n) {
    if ((value & 1n) === 1n) product ^= columns[bit];
  }
  return product;
}
