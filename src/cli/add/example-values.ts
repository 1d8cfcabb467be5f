/** The values of the example code that `inorigin add` tries and prints. */

/** Maximum length of a tensor that the example creates as an array. */
export const MAX_EXAMPLE_ELEMENTS = 2 ** 24

/** Sample rate in the example, which most models of speech expect. */
export const SAMPLE_RATE_HZ = 16_000
