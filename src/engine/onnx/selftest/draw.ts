/** Draws the weights of the self-test, and compares its results. */

/** Returns a pseudorandom byte, the same as in `test/models/selftest.py`. */
export function draw(position: number): number {
  let x = Math.imul(position + 1, 2654435761)
  x = Math.imul(x ^ (x >>> 15), 2246822519)
  x = Math.imul(x ^ (x >>> 13), 3266489917)
  return x >>> 24
}

/** Returns the largest difference; `Infinity` if a logit is missing or NaN. */
export function findLargestError(scores: readonly number[], answers: readonly number[]): number {
  const far = answers.map((answer, index) => Math.abs((scores[index] ?? Number.NaN) - answer))
  return far.some(Number.isNaN) ? Number.POSITIVE_INFINITY : Math.max(...far)
}
