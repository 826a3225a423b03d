/**
 * Sizes of the arena's blocks: every multiple of 16 up to 256, eight to a doubling up to 2 KB (at most 1/8
 * wasted), then what divides a slab evenly, down to two blocks a slab. Larger blocks are runs of whole slabs.
 */

/** References count in units of this size. */
export const UNIT_BYTES = 16;
export const UNIT_SHIFT = 4;

/** Slabs are aligned runs of this size, each holding blocks of one class. */
export const SLAB_BYTES = 64 * 1024;

/** A page of a collection, and the only size whose slabs hold nothing else. */
export const PAGE_BYTES = 1984;

/** Largest block that shares its slab. */
export const MAX_SHARED_BYTES = SLAB_BYTES / 2;

/** Bytes of a block by class. Entry 0 is unused: class 0 marks a free slab. The last entry is the class of pages. */
export const CLASS_BYTES = sizeClasses();
export const CLASS_COUNT = CLASS_BYTES.length;
export const PAGE_CLASS = CLASS_COUNT - 1;
/** Class by size in units. */
const CLASS_OF_UNITS = classOfUnits();
export const CLASS_UNITS = Int32Array.from(CLASS_BYTES, (bytes) => bytes >>> UNIT_SHIFT);
/** Blocks of a slab. */
export const CLASS_CAPACITY = Int32Array.from(CLASS_BYTES, (bytes) => Math.floor(SLAB_BYTES / bytes));

function sizeClasses(): number[] {
  const sizes = [0];
  for (let bytes = UNIT_BYTES; bytes <= 256; bytes += UNIT_BYTES) sizes.push(bytes);
  for (let base = 256; base < 2048; base *= 2) {
    for (let step = 1; step <= 8; step++) sizes.push(base + (base / 8) * step);
  }
  for (let perSlab = 31; perSlab >= 2; perSlab--) {
    const bytes = Math.floor(SLAB_BYTES / perSlab / UNIT_BYTES) * UNIT_BYTES;
    if (bytes >= (sizes.at(-1) as number) * 1.05) sizes.push(bytes);
  }
  sizes.push(PAGE_BYTES);
  return sizes;
}

function classOfUnits(): Uint8Array {
  const classes = new Uint8Array(MAX_SHARED_BYTES / UNIT_BYTES + 1);
  for (let units = 0, cls = 1; units < classes.length; units++) {
    if (units * UNIT_BYTES > CLASS_BYTES[cls]) cls++;
    classes[units] = cls;
  }
  return classes;
}

/** Units of a block of a size class; 0 for what is none. */
export function classUnits(cls: number): number {
  return cls < CLASS_COUNT ? CLASS_UNITS[cls] : 0;
}

/** Class of a block of at least `bytes`, which are at most MAX_SHARED_BYTES. */
export function classFor(bytes: number): number {
  return CLASS_OF_UNITS[(bytes + UNIT_BYTES - 1) >>> UNIT_SHIFT];
}
