/** The agent of the chat's page and of its service worker, as docs/frameworks.md has it. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { stepCountIs, tool, ToolLoopAgent } from 'ai'
import * as z from 'zod'

const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.enum(['Oslo', 'Paris']) }),
  needsApproval: true,
  execute: async ({ city }) => ({ city, degrees: 12 }),
})

/** An agent that calls the tool once. `server` answers its requests to `/v1`. */
export function createAgent(server: { baseURL: string; fetch: typeof fetch }) {
  const inorigin = createOpenAICompatible({
    name: 'inorigin',
    baseURL: server.baseURL,
    fetch: server.fetch,
  })
  return new ToolLoopAgent({
    model: inorigin('@inorigin/guide'),
    tools: { weather },
    stopWhen: stepCountIs(3),
    maxOutputTokens: 60,
    temperature: 0,
    prepareStep: ({ messages }) => ({
      toolChoice: messages.some(({ role }) => role === 'tool') ? 'none' : 'required',
    }),
  })
}
