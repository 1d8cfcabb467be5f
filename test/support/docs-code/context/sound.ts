/** A second of silence in windows of 512 samples. */
export const chunks = Array.from({ length: 31 }, () => new Float32Array(512))
