/**
 * Scores as two signed words whose order, high word first, is that of the doubles: a non-negative
 * double's bits as they are, a negative one's with all but the sign inverted, the low word's top bit
 * flipped because it is compared as signed. -0 is 0; there is no NaN.
 */
const double = new Float64Array(1);
const words = new Int32Array(double.buffer);
const SIGN = 0x80000000 | 0;

/** The words of the score that was last given to `split`. */
export const scoreWords = { high: 0, low: 0 };

export function splitScore(score: number): void {
  // Adding 0 makes -0 into 0.
  double[0] = score + 0;
  const sign = words[1] >> 31;
  scoreWords.high = words[1] ^ (sign & 0x7fffffff);
  scoreWords.low = words[0] ^ sign ^ SIGN;
}

export function joinScore(high: number, low: number): number {
  const sign = high >> 31;
  words[1] = high ^ (sign & 0x7fffffff);
  words[0] = low ^ sign ^ SIGN;
  return double[0];
}

/** Makes `scoreWords` the place directly above its score. */
export function stepAbove(): void {
  scoreWords.low = (scoreWords.low + 1) | 0;
  if (scoreWords.low === SIGN) scoreWords.high = (scoreWords.high + 1) | 0;
}
