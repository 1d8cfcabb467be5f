/**
 * What the shaders are told and what they tell, as words.
 *
 * A job is words: what holds for all rows, what is to be done with each row, then entries and
 * masks. A record is words: the highest key, the sum of exponentials relative to it, and pairs of
 * key and id without order, as many as the job has slots; those that nothing filled have key 0.
 */

/** Scores that one workgroup looks through, which is what a record is of. */
export const CHUNK = 2048

/** Words of a job before its rows: vocabulary, whether scores are half floats, chunks, slots. */
export const HEAD_WORDS = 4

/**
 * Words of a job for each row: its first score, wanted, 1 / temperature, entries and how many,
 * mask.
 */
export const ROW_WORDS = 6

/** Words of an entry: its id, what multiplies a positive and a negative score, what is added. */
export const ENTRY_WORDS = 4

/** Words of a record with this many slots. */
export const recordWords = (slots: number): number => 2 + 2 * slots
