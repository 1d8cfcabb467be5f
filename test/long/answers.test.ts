/** Random schemas and tools on the embedded model, asked for through the endpoint. */
import { availableParallelism } from 'node:os'
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fetchIn } from '../support/requests.ts'
import { isValid } from '../support/random-constraints.ts'
import { createChance } from '../support/random.ts'
import { randomParameters, randomSchema, type Schema } from '../support/schemas.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const COUNT = Number(process.env['LONG_COUNT'] ?? 1000)
/** Asked at once of each page. */
const TOGETHER = 4

let site: Site
/** Each in a profile of its own: a model of one origin computes in one thread. */
let pages: Page[]

beforeAll(async () => {
  site = await openSite()
  pages = await Promise.all(
    Array.from({ length: Math.min(4, availableParallelism()) }, async () => {
      const page = await site.open(undefined, await site.browser.newContext())
      await serveIn(page)
      return page
    }),
  )
})

afterAll(() => site?.close())

interface Tool {
  type: 'function'
  function: { name: string; parameters: Schema }
}

interface Choice {
  finish_reason: string
  message: {
    content: string | null
    tool_calls?: { function: { name: string; arguments: string } }[]
  }
}

const REQUEST = {
  model: '@inorigin/guide',
  messages: [{ role: 'user', content: 'Make something up.' }],
  max_tokens: 200,
}

interface Tally {
  checked: number
  refused: number
  cut: number
  failures: string[]
}

/** `null`: refused, for a schema that is not supported. */
async function ask(page: Page, body: object): Promise<Choice | null> {
  const { status, text } = await fetchIn(page, '/v1/chat/completions', { ...REQUEST, ...body })
  if (status === 400) return null
  if (status !== 200) throw new Error(`${status}: ${text}`)
  return (JSON.parse(text) as { choices: [Choice] }).choices[0]
}

/** Asks for each seed; `wrong` says what is wrong with an answer that ended by itself. */
async function tallyAll(
  request: (seed: number) => { body: object; wrong: (choice: Choice) => string | null },
): Promise<Tally> {
  const tally: Tally = { checked: 0, refused: 0, cut: 0, failures: [] }
  const one = async (page: Page, seed: number): Promise<void> => {
    const { body, wrong } = request(seed)
    const choice = await ask(page, body)
    if (!choice) tally.refused += 1
    else if (choice.finish_reason === 'length') tally.cut += 1
    else {
      tally.checked += 1
      const what = wrong(choice)
      if (what)
        tally.failures.push(
          `seed ${seed}: ${what}\n${JSON.stringify(choice)}\n${JSON.stringify(body)}`,
        )
    }
  }
  let next = 0
  const line = async (page: Page): Promise<void> => {
    while (next < COUNT) await one(page, next++)
  }
  await Promise.all(pages.flatMap((page) => Array.from({ length: TOGETHER }, () => line(page))))
  console.log(JSON.stringify({ ...tally, failures: tally.failures.length }))
  return tally
}

describe.each([0.7, 1.5])('At temperature %d', (temperature) => {
  test('answers are of their schemas', async () => {
    const tally = await tallyAll((seed) => {
      const { schema } = randomSchema(createChance(seed))
      const body = {
        temperature,
        seed,
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', strict: true, schema },
        },
      }
      const wrong = ({ message }: Choice): string | null =>
        isValid(schema, message.content ?? '') ? null : 'not of its schema'
      return { body, wrong }
    })
    expect(tally.failures).toEqual([])
    expect(tally.checked).toBeGreaterThan(COUNT / 4)
  })

  test('calls are of their tools', async () => {
    const tally = await tallyAll((seed) => {
      const chance = createChance(seed)
      const tools = Array.from({ length: 1 + chance.below(3) }, (_, index): Tool => ({
        type: 'function',
        function: { name: `tool_${index}`, parameters: randomParameters(chance).schema },
      }))
      const named = chance.often(0.3) ? chance.pick(tools).function.name : null
      const body = {
        temperature,
        seed,
        tools,
        parallel_tool_calls: chance.often(0.5),
        tool_choice: named === null ? 'required' : { type: 'function', function: { name: named } },
      }
      const wrong = ({ message: { tool_calls: calls = [] } }: Choice): string | null => {
        if (calls.length === 0) return 'no call'
        if (!body.parallel_tool_calls && calls.length > 1) return 'more than one call'
        for (const { function: call } of calls) {
          const tool = tools.find((each) => each.function.name === call.name)?.function
          if (!tool || (named !== null && named !== call.name)) return 'a call of another tool'
          if (!isValid(tool.parameters, call.arguments))
            return 'arguments that are not of its schema'
        }
        return null
      }
      return { body, wrong }
    })
    expect(tally.failures).toEqual([])
    expect(tally.checked).toBeGreaterThan(COUNT / 4)
  })
})
