import { describe, expect, test } from 'vitest'
import { decide, type PolicyState, type WaitingSequence } from '../../../src/engine/run/policy.ts'

/** A prompt without a sequence; `more` replaces its fields. */
const prompt = (
  slot: string,
  pendingTokens: number,
  more: Partial<WaitingSequence<string>> = {},
): WaitingSequence<string> => ({
  slot,
  hasSequence: false,
  computedTokens: 0,
  pendingTokens,
  sharedTokens: new Map(),
  checkpointLengths: [],
  startsOnly: false,
  matchesDraft: false,
  decodedSinceChunk: false,
  ...more,
})

/** A prompt whose prefill runs. */
const prefilling = (
  slot: string,
  computedTokens: number,
  pendingTokens: number,
  more: Partial<WaitingSequence<string>> = {},
): WaitingSequence<string> =>
  prompt(slot, pendingTokens, { hasSequence: true, computedTokens, ...more })

/** A sequence with one token to compute, which had its step after the last chunk. */
const ready = (
  slot: string,
  more: Partial<WaitingSequence<string>> = {},
): WaitingSequence<string> => prefilling(slot, 50, 1, { decodedSinceChunk: true, ...more })

/** A sequence with one token to compute, which had no step after the last chunk. */
const undecoded = (slot: string): WaitingSequence<string> =>
  ready(slot, { decodedSinceChunk: false })

const state = (
  waiting: WaitingSequence<string>[],
  more: Partial<PolicyState<string>> = {},
): PolicyState<string> => ({
  waiting,
  sequences: waiting.length,
  maxBatchSize: 4,
  chunkTokens: { alone: 128, shared: 32 },
  lastChunkMs: 10,
  decodeMs: 0,
  canTruncate: true,
  needsCheckpoints: true,
  ...more,
})

describe('prefill', () => {
  test('computes a prompt at once if it fits into a chunk', () => {
    expect(decide(state([prompt('a', 9)]))).toEqual({ type: 'prefill', slot: 'a', tokens: 9 })
  })

  test('has longer chunks if the sequence is alone', () => {
    expect(decide(state([prompt('a', 500)]))).toMatchObject({ tokens: 128 })
    expect(decide(state([prompt('a', 500)], { sequences: 2 }))).toMatchObject({ tokens: 32 })
  })

  test('takes the prompt that waits longest', () => {
    const waiting = [prefilling('b', 32, 500), prompt('a', 500)]
    expect(decide(state(waiting))).toMatchObject({ type: 'prefill', slot: 'b' })
  })

  test('computes several forced tokens of a running answer', () => {
    const decision = decide(state([prefilling('a', 40, 3)]))
    expect(decision).toEqual({ type: 'prefill', slot: 'a', tokens: 3 })
  })

  test('computes the last token of a cached prompt, which is not ready to decode', () => {
    const decision = decide(state([prompt('a', 1, { computedTokens: 40 })]))
    expect(decision).toEqual({ type: 'prefill', slot: 'a', tokens: 1 })
  })

  test('only starts an answer that needs no logits', () => {
    expect(decide(state([prompt('a', 9, { startsOnly: true })]))).toEqual({
      type: 'start',
      slot: 'a',
    })
  })
})

describe('checkpoints', () => {
  const waiting = [prefilling('a', 20, 500, { checkpointLengths: [5, 20, 26, 300] })]
  const tokens = (more: Partial<PolicyState<string>>): unknown =>
    decide(state(waiting, { sequences: 2, ...more }))

  test('end a chunk if the sequence cannot be truncated', () => {
    expect(tokens({ canTruncate: false })).toMatchObject({ tokens: 6 })
    expect(tokens({ canTruncate: null })).toMatchObject({ tokens: 6 })
  })

  test('are counted from the cached prefix before the start', () => {
    const cached = prompt('a', 500, { computedTokens: 10, checkpointLengths: [10, 30] })
    expect(decide(state([cached], { canTruncate: false }))).toMatchObject({ tokens: 20 })
  })

  test('do not end a chunk before they are in reach', () => {
    const far = [prefilling('a', 30, 500, { checkpointLengths: [300] })]
    expect(decide(state(far, { sequences: 2, canTruncate: false }))).toMatchObject({ tokens: 32 })
  })

  test('are ignored if the sequence can be truncated or the decoder has no use for them', () => {
    expect(tokens({ canTruncate: true })).toMatchObject({ tokens: 32 })
    expect(tokens({ canTruncate: false, needsCheckpoints: false })).toMatchObject({ tokens: 32 })
  })
})

describe('a shared prefix', () => {
  /** `b` shares tokens with `a`, whose prefill has computed 64 of 1000 tokens. */
  const decideShared = (
    shared: number,
    more: Partial<PolicyState<string>> = {},
    running: WaitingSequence<string> = prefilling('a', 64, 936, { checkpointLengths: [90, 200] }),
    cached = 0,
  ): unknown => {
    const waiter = prompt('b', 500, {
      computedTokens: cached,
      sharedTokens: new Map([['a', shared]]),
    })
    return decide(state([waiter, running], more))
  }

  test('is waited for while another prompt computes it', () => {
    expect(decideShared(100)).toMatchObject({ type: 'prefill', slot: 'a' })
  })

  test('is not waited for once it is computed', () => {
    expect(decideShared(64)).toMatchObject({ slot: 'b' })
  })

  test('is not waited for if it saves less than a chunk', () => {
    expect(decideShared(96, {}, undefined, 64)).toMatchObject({ slot: 'a' })
    expect(decideShared(95, {}, undefined, 64)).toMatchObject({ slot: 'b' })
  })

  test('counts up to a checkpoint if the sequence cannot be truncated', () => {
    expect(decideShared(100, { canTruncate: false })).toMatchObject({ slot: 'a' })
    expect(decideShared(89, { canTruncate: false })).toMatchObject({ slot: 'b' })
  })

  test('is not waited for if its prompt has not started or already decodes', () => {
    expect(decideShared(100, {}, prompt('a', 500))).toMatchObject({ slot: 'b' })
    expect(decideShared(100, {}, ready('a'))).toMatchObject({ slot: 'b' })
  })
})

describe('decode', () => {
  test('takes all ready sequences into one batch', () => {
    expect(decide(state([ready('a'), ready('b')]))).toEqual({
      type: 'decode',
      slots: ['a', 'b'],
      drafts: false,
    })
  })

  test('takes those that wait longest if not all fit', () => {
    const waiting = ['c', 'a', 'd', 'b'].map((slot) => ready(slot))
    expect(decide(state(waiting, { maxBatchSize: 2 }))).toMatchObject({ slots: ['c', 'a'] })
  })

  test('comes once for each sequence after a chunk', () => {
    const waiting = [prefilling('p', 32, 500), undecoded('a'), ready('b'), undecoded('c')]
    expect(decide(state(waiting))).toMatchObject({ type: 'decode', slots: ['a', 'c'] })
    const decoded = [prefilling('p', 32, 500), ready('a'), ready('b'), ready('c')]
    expect(decide(state(decoded))).toMatchObject({ type: 'prefill', slot: 'p' })
  })

  test('goes on as long as a slow chunk took', () => {
    const waiting = [prefilling('p', 32, 500), ready('a')]
    const type = (lastChunkMs: number, decodeMs: number): string =>
      decide(state(waiting, { lastChunkMs, decodeMs })).type
    expect(type(200, 199)).toBe('decode')
    expect(type(200, 200)).toBe('prefill')
    expect(type(49, 0)).toBe('prefill')
    expect(type(50, 0)).toBe('decode')
  })

  test('goes on for at most 2 s after a chunk that stalled', () => {
    const waiting = [prefilling('p', 32, 500), ready('a')]
    const type = (decodeMs: number): string =>
      decide(state(waiting, { lastChunkMs: 60_000, decodeMs })).type
    expect(type(1_999)).toBe('decode')
    expect(type(2_000)).toBe('prefill')
  })

  test('does not keep a prompt waiting if no sequence is ready', () => {
    const decision = decide(state([prefilling('p', 32, 500)], { lastChunkMs: 1_000 }))
    expect(decision.type).toBe('prefill')
  })
})

describe('drafts', () => {
  test('are allowed for a sequence that is alone', () => {
    expect(decide(state([ready('a')]))).toEqual({ type: 'decode', slots: ['a'], drafts: true })
    // Others that do not wait for logits are not delayed.
    expect(decide(state([ready('a')], { sequences: 2 }))).toMatchObject({ drafts: true })
  })

  test('are not allowed while others wait', () => {
    expect(decide(state([ready('a'), ready('b')]))).toMatchObject({ drafts: false })
    const withPrompt = [undecoded('a'), prefilling('p', 32, 500)]
    expect(decide(state(withPrompt))).toMatchObject({ slots: ['a'], drafts: false })
  })

  test('are not allowed if they cannot be removed', () => {
    expect(decide(state([ready('a')], { canTruncate: false }))).toMatchObject({ drafts: false })
    expect(decide(state([ready('a')], { canTruncate: null }))).toMatchObject({ drafts: false })
  })

  test('are verified if the pending token matches', () => {
    const waiting = [ready('a', { matchesDraft: true })]
    expect(decide(state(waiting))).toEqual({ type: 'verify', slot: 'a' })
  })

  test('are verified in turn with the decode steps of others', () => {
    const drafted = ready('a', { matchesDraft: true })
    expect(decide(state([drafted, ready('b')]))).toEqual({ type: 'verify', slot: 'a' })
    expect(decide(state([ready('b'), drafted]))).toMatchObject({ type: 'decode', slots: ['b'] })
  })
})
