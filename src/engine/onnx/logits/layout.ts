/**
 * Layout of the shaders' input (a job) and output (records), in 32-bit words.
 *
 * A job has a head for all rows, a part for each row, then entries and token masks. A record has
 * the highest key, the sum of exponentials relative to it, and unordered pairs of key and id. It
 * has as many pairs as the job has slots; unused pairs have key 0.
 */

/** Number of logits that one workgroup scans, and that one record covers. */
export const CHUNK_LOGITS = 2048

/** Words of a job's head: vocabulary, 1 if logits are float16, number of chunks, of slots. */
export const HEAD_WORDS = 4

/**
 * Words of a job for each row: index of its first logit, number of wanted candidates,
 * 1 / temperature, offset and number of entries, offset of the mask.
 */
export const ROW_WORDS = 6

/** Words of an entry: id, factor of a positive logit, factor of a negative logit, bias. */
export const ENTRY_WORDS = 4

/** Returns the number of words of a record with this many slots. */
export const recordWords = (slots: number): number => 2 + 2 * slots
