/** Detects inputs that take the sample rate of a sound. */

/** Returns `true` for an integer input whose name says that it is a sample rate. */
export function isSampleRate(name: string, type: string): boolean {
  return /^int(32|64)$/.test(type) && /^(sr|fs|sample_?rate|sampling_?rate)$/i.test(name)
}
