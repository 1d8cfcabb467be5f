/**
 * Answers of each kind whose host dies once, after the k-th token. `npm run test:long` runs every k.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDeathStage, ROWS, TOKENS, type DeathStage } from '../support/death-stage.ts'

let stage: DeathStage

beforeAll(async () => {
  stage = await openDeathStage()
})

afterAll(() => stage?.close())

// Each row has another number, and all together are spread over the answer.
const CASES = ROWS.map((row, index) => ({ ...row, tokens: 1 + ((index * 7) % (TOKENS - 1)) }))

test.each(CASES)(
  '$style, $content, stream: $stream, $way: is the same after a death at token $tokens',
  async ({ tokens, ...row }) => {
    const whole = await stage.readWhole(row)
    expect(whole.tokens[1]).toBe(TOKENS)
    expect(await stage.readInterrupted(row, tokens)).toEqual(whole)
  },
)
