/** A second of silence in windows of 512 samples. */
export const chunks = Array.from({ length: 31 }, () => new Float32Array(512))
/** A file that somebody chose. */
export const file = new File(['sound'], 'speech.mp3', { type: 'audio/mpeg' })
