/** The recipes of docs/frameworks.md: agents of other libraries, with scripted answers. */
import { ChatOpenAI } from '@langchain/openai'
import { createAgent, tool } from 'langchain'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { createTestServer } from '../../../src/extras/testing/server.ts'
import { runWeatherAgent } from '../../support/weather-agent.ts'

const model = '@inorigin/guide'
const parameters = z.object({ city: z.string() })

/** A server whose model calls the tool `weather`, and then answers. */
const openServer = () =>
  createTestServer({
    models: [
      {
        tag: model,
        answers: [
          { toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }] },
          'It is warm in Oslo.',
        ],
      },
    ],
  })

test('an agent of LangChain calls a tool', async () => {
  const server = openServer()
  const cities: string[] = []
  const agent = createAgent({
    model: new ChatOpenAI({
      model,
      apiKey: 'none',
      configuration: { baseURL: server.baseURL, fetch: server.fetch },
    }),
    tools: [
      tool(
        ({ city }: { city: string }) => {
          cities.push(city)
          return '21 degrees'
        },
        { name: 'weather', description: 'The weather in a city', schema: parameters },
      ),
    ],
  })
  const { messages } = await agent.invoke({
    messages: [{ role: 'user', content: 'Is it warm in Oslo?' }],
  })
  expect(cities).toEqual(['Oslo'])
  expect(messages.at(-1)?.content).toBe('It is warm in Oslo.')
  expect(server.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', content: '21 degrees' })
})

test('an agent of the OpenAI Agents SDK calls a tool', async () => {
  expect(await runWeatherAgent()).toMatchObject({
    cities: ['Oslo'],
    finalOutput: 'It is warm in Oslo.',
    told: { role: 'tool', content: '21 degrees' },
  })
})
