/** The recipe of docs/frameworks.md for the OpenAI Agents SDK, with scripted answers. */
import {
  Agent,
  OpenAIChatCompletionsModel,
  run,
  setTracingDisabled,
  tool as agentTool,
} from '@openai/agents'
import OpenAI from 'openai'
import * as z from 'zod'
import { createTestServer } from '../../src/extras/testing/server.ts'

/** Runs an agent whose model calls the tool `weather`, and then answers. */
export async function runWeatherAgent() {
  const model = '@inorigin/guide'
  const server = createTestServer({
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
  const cities: string[] = []
  setTracingDisabled(true)
  const { baseURL, fetch } = server
  const client = new OpenAI({ baseURL, fetch, apiKey: 'none', dangerouslyAllowBrowser: true })
  const agent = new Agent({
    name: 'Weather',
    instructions: 'Answer briefly.',
    model: new OpenAIChatCompletionsModel(client, model),
    tools: [
      agentTool({
        name: 'weather',
        description: 'The weather in a city',
        parameters: z.object({ city: z.string() }),
        async execute({ city }) {
          cities.push(city)
          return '21 degrees'
        },
      }),
    ],
  })
  const { finalOutput } = await run(agent, 'Is it warm in Oslo?')
  return { cities, finalOutput, told: server.requests[1]?.messages.at(-1) }
}
