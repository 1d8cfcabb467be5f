import { afterEach, expect, test } from 'vitest'
import type { GenerationUpdate } from '../../../src/engine/engine.ts'
import { createChance } from '../../support/random.ts'
import type { Chance } from '../../support/random.ts'
import { repeating } from './run-decoder.ts'
import { failure, fakeEngine, numbers, textOf } from './run-fakes.ts'
import type { Engine, EngineOptions } from './run-fakes.ts'

const engines: Engine[] = []
afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()))
})

function open(options: EngineOptions): Engine {
  const engine = fakeEngine({ logitsFunction: repeating(5), ...options })
  engines.push(engine)
  return engine
}

const tokensOf = (text: string): number[] => text.trim().split(' ').map(Number)

/** What is said after which piece. */
function draw(chance: Chance): Map<number, GenerationUpdate> {
  const said = new Map<number, GenerationUpdate>()
  for (let count = 1 + chance.below(4); count > 0; count -= 1) {
    // Even ones, which the constraint allows.
    const append = textOf(Array.from({ length: 1 + chance.below(12) }, () => 2 * chance.below(31)))
    const constraint = chance.pick([
      null,
      { type: 'pattern', pattern: 'even' } as const,
      { type: 'constant', text: '4 8 4 8' } as const,
    ])
    said.set(
      1 + chance.below(50),
      chance.pick<GenerationUpdate>([
        { append },
        { append },
        { constraint },
        { append: '', constraint },
      ]),
    )
  }
  return said
}

interface Story {
  drafts: boolean
  said: ReadonlyMap<number, GenerationUpdate>
  /** Pieces after which nobody wants more. */
  pieces: number
  seed: number | undefined
  options?: EngineOptions
}

/** An answer, and the next turn of the conversation. */
async function live({ drafts, said, pieces, seed, options }: Story): Promise<unknown[]> {
  const { run } = open({ drafts, ...options })
  const prompt = numbers(30)
  const first = run(prompt, { maxTokens: 60, ...(seed !== undefined && { seed }) }).pieces
  const texts: string[] = []
  let end: unknown = 'left'
  let steer: GenerationUpdate | undefined
  while (texts.length < pieces) {
    const { value, done } = await first.next(steer)
    if (done) {
      end = value
      break
    }
    texts.push(value.text)
    steer = said.get(texts.length)
  }
  await first.return({ reason: 'stop', completionTokens: 0 })
  const turn = [...prompt, ...tokensOf(texts.join('')), 1, 2]
  const second = run(turn, { maxTokens: 20 })
  return [texts, end, (await second.all()).text]
}

test.each(Array.from({ length: 24 }, (_, seed) => [seed]))(
  'what is said in the middle of a guess has its effect, and no other: %i',
  async (number) => {
    const chance = createChance(number)
    const said = draw(chance)
    const story = {
      said,
      pieces: chance.often(0.3) ? 1 + chance.below(40) : Infinity,
      seed: chance.often(0.5) ? number : undefined,
    }
    const calm = await live({ ...story, drafts: false })
    expect(await live({ ...story, drafts: true })).toEqual(calm)
    const call = 5 + chance.below(40)
    const options = {
      fail: (at: number) => (at === call ? failure('device_lost') : null),
      reopenOptions: {},
    }
    expect(await live({ ...story, drafts: true, options })).toEqual(calm)
  },
)

test('a text that is written for the model takes the place of what was guessed', async () => {
  let guesses = 0
  for (let at = 1; at <= 20; at += 1) {
    const answers = []
    for (const drafts of [false, true]) {
      const { decoder, run } = open({ drafts })
      const steer = (piece: number): GenerationUpdate | undefined =>
        piece === at ? { append: '50 51 52 ' } : undefined
      const first = await run(numbers(30), { maxTokens: 40, steer }).all()
      const turn = [...numbers(30), ...tokensOf(first.text)]
      answers.push([first.text, (await run(turn).all()).text])
      guesses += decoder.calls.filter((call) => call.startsWith('truncate')).length
    }
    expect(answers[1]).toEqual(answers[0])
  }
  expect(guesses).toBeGreaterThan(20)
})
