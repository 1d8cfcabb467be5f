/**
 * The current majors of the clients, with the checks of those of the repository. Some of them need
 * Node 22, so they are bundled and run in a page. It installs them, which needs the npm registry.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installCurrent, openStage, type Outcome, type Stage } from '../conformance/run.ts'
import { bundleScript } from '../support/sdks.ts'
import { openSite } from '../support/site.ts'
import type * as Agents from '../support/weather-agent.ts'

/** Columns of the page. The others are no package, or the older major that LangChain uses. */
const CLIENTS = [
  'OpenAI SDK: chat',
  'OpenAI SDK: responses',
  'Anthropic SDK: 1.x',
  'AI SDK: openai(id)',
  'AI SDK: openai.chat(id)',
  'AI SDK: openai-compatible',
  'AI SDK: anthropic',
  'LangChain: ChatOpenAI',
  'LangChain: ChatOpenAI, responses',
  'LangChain: ChatAnthropic',
]

/** Beside other tests, all checks of a client took a minute on two cores, and the installation five. */
const TIMEOUT_MS = 600_000

let stage: Stage

beforeAll(async () => {
  stage = await openStage(installCurrent())
}, TIMEOUT_MS)

afterAll(() => stage?.close())

test.each(CLIENTS)(
  '%s: each check passes, or is refused by name',
  { tags: ['slow'], timeout: TIMEOUT_MS },
  async (name) => {
    const index = stage.columns.findIndex(({ table, title }) => `${table}: ${title}` === name)
    const outcomes: Record<string, Outcome> = {}
    for (const check of stage.columns[index]?.checks ?? [])
      outcomes[check] = await stage.check(index, check)
    expect(Object.keys(outcomes).length).toBeGreaterThan(5)
    expect(Object.entries(outcomes).filter(([, { outcome }]) => outcome === 'failed')).toEqual([])
  },
)

test(
  'OpenAI Agents SDK: an agent calls a tool',
  { tags: ['slow'], timeout: TIMEOUT_MS },
  async () => {
    const script = await bundleScript('./weather-agent.ts', 'agents', installCurrent())
    const site = await openSite({ pages: { '/agents.js': script } })
    try {
      const page = await site.open()
      await page.addScriptTag({ url: '/agents.js' })
      const result = await page.evaluate(() => {
        const { agents } = globalThis as unknown as { agents: typeof Agents }
        return agents.runWeatherAgent()
      })
      expect(result).toMatchObject({
        cities: ['Oslo'],
        finalOutput: 'It is warm in Oslo.',
        told: { role: 'tool', content: '21 degrees' },
      })
    } finally {
      await site.close()
    }
  },
)
