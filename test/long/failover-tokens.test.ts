/** Answers of each kind whose host dies after each token. A row takes minutes, and all rows an hour. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDeathStage, ROWS, TOKENS, type DeathStage } from '../support/death-stage.ts'

let stage: DeathStage

beforeAll(async () => {
  stage = await openDeathStage()
})

afterAll(() => stage?.close())

test.each(ROWS)(
  '$style, $content, stream: $stream, $way: is the same after a death at any token',
  async (row) => {
    const whole = await stage.readWhole(row)
    expect(whole.tokens[1]).toBe(TOKENS)
    for (let tokens = 1; tokens <= TOKENS; tokens += 1) {
      const answer = await stage.readInterrupted(row, tokens)
      expect(answer, `death after token ${tokens}`).toEqual(whole)
      if (tokens % 10 === 0) {
        const { style, content, way } = row
        process.stderr.write(`${style}, ${content}, ${way}: ${tokens} of ${TOKENS} deaths\n`)
      }
    }
  },
)
