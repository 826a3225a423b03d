/** Configuration: the values of all parameters, set together or not at all. */
import path from 'node:path';
import {
  HIDDEN,
  parameters,
  ParameterError,
  parseParameter,
  showParameter,
  type Parameter,
} from './parameters.ts';

export type Value = string | number | boolean;

/** A parameter or value that cannot be set; `message` is Redis's text without the code word. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** The parameter, as it was given. */
  readonly parameter: string;
  /** What is wrong with it; empty when the parameter is unknown. */
  readonly reason: string;

  constructor(parameter: string, reason: string, message: string) {
    super(message);
    this.parameter = parameter;
    this.reason = reason;
  }
}

const byName = new Map<string, Parameter>();
for (const parameter of parameters) {
  byName.set(parameter.name, parameter);
  if (parameter.alias !== undefined) byName.set(parameter.alias, parameter);
}

/** The parameter of that name, in any case. */
export function findParameter(name: string): Parameter | undefined {
  return byName.get(name.toLowerCase());
}

/** All names, older ones included, with their parameters. */
export function parameterNames(): IterableIterator<[string, Parameter]> {
  return byName.entries();
}

/** The name of a parameter that is spelled much like this; undefined when none is. */
export function nearestParameter(name: string): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const known of byName.keys()) {
    const distance = editDistance(name.toLowerCase(), known);
    if (distance < bestDistance) [best, bestDistance] = [known, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length];
}

/** Redis has a parameter of this name. */
function isRedis({ name }: Parameter): boolean {
  return name !== 'engine' && !name.includes('.');
}

/** A value given under a parameter's older name, as it is under its own. */
function meant({ name, aliasValues }: Parameter, given: string, value: string): string {
  return given.toLowerCase() === name ? value : (aliasValues?.[value] ?? value);
}

export class Config {
  private readonly values = new Map<string, Value>();
  private readonly appliers = new Map<string, () => void>();
  /** Parameters that a file, the command line or CONFIG SET has set. */
  readonly changed = new Set<string>();
  /** The file that was read at the start and that CONFIG REWRITE writes; null when there is none. */
  file: string | null = null;

  constructor(initial: Readonly<Record<string, string>> = {}) {
    for (const parameter of parameters) this.values.set(parameter.name, parameter.default);
    for (const [name, value] of Object.entries(initial)) this.load(name, value);
  }

  /** Sets a parameter at the start, immutable ones too. Throws ConfigError. */
  load(name: string, value: string): void {
    const parameter = findParameter(name);
    if (parameter === undefined) throw new ConfigError(name, '', `unknown parameter '${name}'`);
    this.values.set(parameter.name, this.parse(parameter, name, meant(parameter, name, value)));
    this.changed.add(parameter.name);
  }

  /**
   * CONFIG SET: all of them or none. Throws ConfigError. `guard` may refuse a parameter by returning
   * the reason.
   */
  set(
    pairs: readonly (readonly [name: string, value: string])[],
    guard: (parameter: Parameter) => string | undefined,
  ): void {
    const found = pairs.map(([name]) => findParameter(name));
    const unknown = found.indexOf(undefined);
    const refuse = (name: string, reason: string): ConfigError =>
      new ConfigError(name, reason, `CONFIG SET failed (possibly related to argument '${name}') - ${reason}`);
    let refused: ConfigError | undefined;
    pairs.forEach(([name, value], i) => {
      const parameter = found[i];
      if (parameter === undefined || (unknown >= 0 && i > unknown)) return;
      // Tools that set all they have read must not fail at a parameter that Redis does not have.
      const unchanged = !isRedis(parameter) && value === this.get(parameter.name);
      const reason =
        parameter.immutable === true && !unchanged
          ? "can't set immutable config"
          : (guard(parameter) ?? (found.indexOf(parameter) < i ? 'duplicate parameter' : undefined));
      if (reason !== undefined) refused ??= refuse(name, reason);
    });
    if (unknown >= 0)
      throw new ConfigError(
        pairs[unknown][0],
        '',
        `Unknown option or number of arguments for CONFIG SET - '${pairs[unknown][0]}'`,
      );
    if (refused !== undefined) throw refused;
    const before = new Map(this.values);
    let at = '';
    try {
      pairs.forEach(([name, value], i) => {
        const parameter = found[i]!;
        at = name.toLowerCase();
        const current = this.get(parameter.name);
        this.values.set(parameter.name, parseParameter(parameter, meant(parameter, name, value), current));
      });
      for (const parameter of found) {
        at = parameter!.name;
        if (before.get(at) !== this.values.get(at)) this.appliers.get(at)?.();
      }
    } catch (error) {
      const attempted = [...this.values];
      for (const [name, value] of before) this.values.set(name, value);
      for (const [name, value] of attempted)
        if (before.get(name) !== value && name !== at) this.appliers.get(name)?.();
      if (!(error instanceof ParameterError)) throw error;
      throw refuse(at, error.message);
    }
    for (const parameter of found) this.changed.add(parameter!.name);
  }

  private parse(parameter: Parameter, name: string, value: string): Value {
    try {
      return parseParameter(parameter, value, this.get(parameter.name));
    } catch (error) {
      if (error instanceof ParameterError)
        throw new ConfigError(name, error.message, `${name}: ${error.message}`);
      throw error;
    }
  }

  /** Calls `apply` now and whenever the parameter changes; it may throw ParameterError to refuse. */
  onChange(name: string, apply: () => void): void {
    this.appliers.set(name, apply);
    apply();
  }

  private value(name: string): Value {
    const value = this.values.get(name);
    if (value === undefined) throw new Error(`no parameter '${name}'`);
    return value;
  }

  /** As CONFIG GET shows it. */
  get(name: string): string {
    return showParameter(byName.get(name)!, this.value(name));
  }

  /** As CONFIG GET shows it under a name that may be the older one. */
  getAs(name: string): string {
    const parameter = findParameter(name)!;
    const { name: own, aliasValues = {} } = parameter;
    const shown = this.get(own);
    // Tools that ask where the files are run elsewhere.
    if (parameter.kind === 'text' && parameter.directory === true) return path.resolve(shown);
    if (name.toLowerCase() === own) return shown;
    return Object.entries(aliasValues).find(([, value]) => value === shown)?.[0] ?? shown;
  }

  number(name: string): number {
    const value = this.value(name);
    if (typeof value !== 'number') throw new Error(`parameter '${name}' is no number`);
    return value;
  }

  flag(name: string): boolean {
    return this.value(name) === true;
  }

  text(name: string): string {
    return String(this.value(name));
  }

  /** Replaces a value that the server itself has found, e.g. the port it got for 0. */
  assign(name: string, value: Value): void {
    this.values.set(name, value);
  }

  isHidden(name: string): boolean {
    return HIDDEN.has(name);
  }
}
