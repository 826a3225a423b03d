/**
 * Shapes of JSON documents: one definition gives both the TypeScript type and the check of what a
 * file really holds, so the two cannot drift apart. A check reports every problem with its path.
 */

/** Checks `value` found at `path` and appends what is wrong to `problems`. */
export interface Shape<T> {
  check(value: unknown, path: string, problems: string[]): void;
  /** Never set: carries the type. */
  readonly type?: T;
  readonly optional?: boolean;
}

export type TypeOf<S> = S extends Shape<infer T> ? T : never;

type Fields = Record<string, Shape<unknown>>;
type OptionalNames<F extends Fields> = {
  [K in keyof F]: F[K] extends { optional: true } ? K : never;
}[keyof F];
type Flat<T> = { [K in keyof T]: T[K] };
type ObjectOf<F extends Fields> = Flat<
  { [K in Exclude<keyof F, OptionalNames<F>>]: TypeOf<F[K]> } & {
    [K in OptionalNames<F>]?: TypeOf<F[K]>;
  }
>;

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function scalar<T>(kind: string, accept: (value: unknown) => boolean): Shape<T> {
  return {
    check(value, path, problems) {
      if (!accept(value)) problems.push(`${path}: expected ${kind}, found ${kindOf(value)}`);
    },
  };
}

export const text = scalar<string>('a string', (value) => typeof value === 'string');
export const flag = scalar<boolean>('a boolean', (value) => typeof value === 'boolean');
/** JSON has no NaN or infinity: a quantity that does not exist is `null`, see `nullable`. */
export const quantity = scalar<number>('a finite number', (value) => Number.isFinite(value));
export const count = scalar<number>(
  'a whole number >= 0',
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
);

export function literal<const T extends string | number>(expected: T): Shape<T> {
  return {
    check(value, path, problems) {
      if (value !== expected) {
        problems.push(`${path}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(value)}`);
      }
    },
  };
}

export function oneOf<const T extends readonly string[]>(names: T): Shape<T[number]> {
  return {
    check(value, path, problems) {
      if (!names.includes(value as string)) {
        problems.push(`${path}: expected one of ${names.join(', ')}, found ${JSON.stringify(value)}`);
      }
    },
  };
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return {
    check(value, path, problems) {
      if (value !== null) shape.check(value, path, problems);
    },
  };
}

export function optional<T>(shape: Shape<T>): Shape<T> & { optional: true } {
  return {
    optional: true,
    check(value, path, problems) {
      if (value !== undefined) shape.check(value, path, problems);
    },
  };
}

export function list<T>(item: Shape<T>): Shape<T[]> {
  return {
    check(value, path, problems) {
      if (!Array.isArray(value)) {
        problems.push(`${path}: expected an array, found ${kindOf(value)}`);
        return;
      }
      value.forEach((element, index) => item.check(element, `${path}[${index}]`, problems));
    },
  };
}

/** An object used as a dictionary. */
export function dictionary<T>(item: Shape<T>): Shape<Record<string, T>> {
  return {
    check(value, path, problems) {
      if (kindOf(value) !== 'object') {
        problems.push(`${path}: expected an object, found ${kindOf(value)}`);
        return;
      }
      for (const [name, element] of Object.entries(value as object)) {
        item.check(element, `${path}.${name}`, problems);
      }
    },
  };
}

/** An object with these fields. Unknown fields are allowed: a later minor version may add some. */
export function object<const F extends Fields>(fields: F): Shape<ObjectOf<F>> {
  return {
    check(value, path, problems) {
      if (kindOf(value) !== 'object') {
        problems.push(`${path}: expected an object, found ${kindOf(value)}`);
        return;
      }
      for (const [name, shape] of Object.entries(fields)) {
        const field = (value as Record<string, unknown>)[name];
        if (field === undefined && !shape.optional) problems.push(`${path}.${name}: missing`);
        else shape.check(field, `${path}.${name}`, problems);
      }
    },
  };
}
