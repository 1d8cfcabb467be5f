/** Minimum and maximum of samples per second of sound. */
export const SAMPLE_RATES = [1000, 768_000] as const
