import { expect, test } from 'vitest'
import { decide, type PolicyState, type WaitingSequence } from '../../../src/engine/run/policy.ts'

type Waiting = WaitingSequence<string>
type State = Partial<PolicyState<string>>

/** A prompt without a sequence; `more` replaces its fields. */
const prompt = (slot: string, pendingTokens: number, more: Partial<Waiting> = {}): Waiting => ({
  slot,
  hasSequence: false,
  computedTokens: 0,
  pendingTokens,
  sharedTokens: new Map(),
  checkpointLengths: [],
  startsOnly: false,
  matchesDraft: false,
  hasCertainDraft: false,
  decodedSinceChunk: false,
  ...more,
})

/** A prompt whose prefill runs. */
const prefilling = (
  slot: string,
  computedTokens: number,
  pendingTokens: number,
  more: Partial<Waiting> = {},
): Waiting => prompt(slot, pendingTokens, { hasSequence: true, computedTokens, ...more })

/** A sequence with one token to compute, which had its step after the last chunk. */
const ready = (slot: string, more: Partial<Waiting> = {}): Waiting =>
  prefilling(slot, 50, 1, { decodedSinceChunk: true, ...more })

/** A sequence with one token to compute, which had no step after the last chunk. */
const undecoded = (slot: string): Waiting => ready(slot, { decodedSinceChunk: false })

const state = (waiting: Waiting[], more: State = {}): PolicyState<string> => ({
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

type Case = [title: string, waiting: Waiting[], decision: object, more?: State]
const CASES: Case[] = []
const decides = (subject: string, cases: Case[]): void =>
  void CASES.push(...cases.map(([title, ...rest]): Case => [`${subject} ${title}`, ...rest]))

const prefill = (slot: string, tokens: number) => ({ type: 'prefill', slot, tokens })
const PREFILL_P = { type: 'prefill', slot: 'p' }
const DECODE = { type: 'decode' }
const NO_DRAFTS = { drafts: false }

decides('prefill', [
  ['computes a prompt at once if it fits into a chunk', [prompt('a', 9)], prefill('a', 9)],
  ['has long chunks if the sequence is alone', [prompt('a', 500)], { tokens: 128 }],
  ['has short chunks beside others', [prompt('a', 500)], { tokens: 32 }, { sequences: 2 }],
  [
    'takes the prompt that waits longest',
    [prefilling('b', 32, 500), prompt('a', 500)],
    { type: 'prefill', slot: 'b' },
  ],
  ['computes several forced tokens of an answer', [prefilling('a', 40, 3)], prefill('a', 3)],
  [
    'computes the last token of a cached prompt, which is not ready to decode',
    [prompt('a', 1, { computedTokens: 40 })],
    prefill('a', 1),
  ],
  [
    'only starts an answer that needs no logits',
    [prompt('a', 9, { startsOnly: true })],
    { type: 'start', slot: 'a' },
  ],
])

const marked = [prefilling('a', 20, 500, { checkpointLengths: [5, 20, 26, 300] })]
const cached = [prompt('a', 500, { computedTokens: 10, checkpointLengths: [10, 30] })]
const far = [prefilling('a', 30, 500, { checkpointLengths: [300] })]
const fixed: State = { sequences: 2, canTruncate: false }
decides('checkpoints', [
  ['end a chunk if the sequence cannot be truncated', marked, { tokens: 6 }, fixed],
  ['end a chunk if that is unknown', marked, { tokens: 6 }, { ...fixed, canTruncate: null }],
  ['are counted from the cached prefix before the start', cached, { tokens: 20 }, fixed],
  ['do not end a chunk before they are in reach', far, { tokens: 32 }, fixed],
  ['are ignored if it can be truncated', marked, { tokens: 32 }, { sequences: 2 }],
  ['are ignored if unused', marked, { tokens: 32 }, { ...fixed, needsCheckpoints: false }],
])

/** `b` shares tokens with `a`, whose prefill has computed 64 of 1000 tokens. */
const sharing = (
  shared: number,
  computedTokens = 0,
  running = prefilling('a', 64, 936, { checkpointLengths: [90, 200] }),
): Waiting[] => [
  prompt('b', 500, { computedTokens, sharedTokens: new Map([['a', shared]]) }),
  running,
]
decides('a shared prefix', [
  ['is waited for while its prefill runs', sharing(100), { type: 'prefill', slot: 'a' }],
  ['is not waited for once it is computed', sharing(64), { slot: 'b' }],
  ['is waited for if it saves a chunk', sharing(96, 64), { slot: 'a' }],
  ['is not waited for if it saves less than a chunk', sharing(95, 64), { slot: 'b' }],
  ['counts up to a checkpoint', sharing(100), { slot: 'a' }, { canTruncate: false }],
  ['does not count after it', sharing(89), { slot: 'b' }, { canTruncate: false }],
  ['is not waited for before its start', sharing(100, 0, prompt('a', 500)), { slot: 'b' }],
  ['is not waited for if its answer decodes', sharing(100, 0, ready('a')), { slot: 'b' }],
])

const beside = [prefilling('p', 32, 500), ready('a')]
const stalled = 60_000
decides('decode', [
  [
    'takes all ready sequences into one batch',
    [ready('a'), ready('b')],
    { type: 'decode', slots: ['a', 'b'], drafts: false },
  ],
  [
    'takes those that wait longest if not all fit',
    ['c', 'a', 'd', 'b'].map((slot) => ready(slot)),
    { slots: ['c', 'a'] },
    { maxBatchSize: 2 },
  ],
  [
    'comes once for each sequence after a chunk',
    [prefilling('p', 32, 500), undecoded('a'), ready('b'), undecoded('c')],
    { type: 'decode', slots: ['a', 'c'] },
  ],
  ['does not come twice', beside, PREFILL_P],
  ['continues as long as a slow chunk took', beside, DECODE, { lastChunkMs: 200, decodeMs: 199 }],
  ['ends after that time', beside, PREFILL_P, { lastChunkMs: 200, decodeMs: 200 }],
  ['does not continue after 49 ms', beside, PREFILL_P, { lastChunkMs: 49, decodeMs: 0 }],
  ['continues after 50 ms', beside, DECODE, { lastChunkMs: 50, decodeMs: 0 }],
  ['continues after a stall', beside, DECODE, { lastChunkMs: stalled, decodeMs: 1_999 }],
  ['continues for at most 2 s', beside, PREFILL_P, { lastChunkMs: stalled, decodeMs: 2_000 }],
  ['needs a ready sequence', [prefilling('p', 32, 500)], PREFILL_P, { lastChunkMs: 1_000 }],
])

const drafted = ready('a', { matchesDraft: true })
decides('drafts', [
  [
    'are allowed for a sequence that is alone',
    [ready('a')],
    { type: 'decode', slots: ['a'], drafts: true },
  ],
  ['are allowed beside others that do not wait', [ready('a')], { drafts: true }, { sequences: 2 }],
  ['are not allowed while others wait', [ready('a'), ready('b')], NO_DRAFTS],
  [
    'are not allowed while a prompt waits',
    [undecoded('a'), prefilling('p', 32, 500)],
    { slots: ['a'], drafts: false },
  ],
  ['need a sequence that can be truncated', [ready('a')], NO_DRAFTS, { canTruncate: false }],
  ['are not allowed if that is unknown', [ready('a')], NO_DRAFTS, { canTruncate: null }],
  [
    'that are certain run alone, also beside others',
    [ready('b'), ready('a', { hasCertainDraft: true })],
    { type: 'decode', slots: ['a'], drafts: true },
  ],
  [
    'that are certain need a sequence that can be truncated, too',
    [ready('a', { hasCertainDraft: true }), ready('b')],
    NO_DRAFTS,
    { canTruncate: false },
  ],
  ['are verified if the pending token matches', [drafted], { type: 'verify', slot: 'a' }],
  ['are verified before a later step', [drafted, ready('b')], { type: 'verify', slot: 'a' }],
  ['wait for an earlier step', [ready('b'), drafted], { type: 'decode', slots: ['b'] }],
])

test.each(CASES)('%s', (_title, waiting, decision, more) => {
  expect(decide(state(waiting, more))).toMatchObject(decision)
})
