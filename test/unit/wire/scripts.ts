/** Answers with everything in them. */
import type { GenerationRequest, TokenLogprob } from '../../../src/types/index.ts'
import { scriptedHost, send } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'

export const LONG_USAGE = {
  promptTokens: 12,
  cachedTokens: 5,
  completionTokens: 30,
  reasoningTokens: 4,
}

/** Thinks, says something, and calls two tools, one of them with nothing. */
export const CALLING: Script = [
  { type: 'start', promptTokens: 12, cachedTokens: 5 },
  { type: 'reasoning', text: 'Two' },
  { type: 'reasoning', text: ' cities.' },
  { type: 'text', text: 'Let me' },
  { type: 'text', text: ' look.' },
  { type: 'tool_call', index: 0, id: 'call_A1', name: 'weather' },
  { type: 'tool_arguments', index: 0, text: '{"city":' },
  { type: 'heartbeat' },
  { type: 'tool_arguments', index: 0, text: ' "Oslo"}' },
  { type: 'tool_call', index: 1, id: 'call_B2', name: 'now' },
  { type: 'tool_arguments', index: 1, text: '{}' },
  { type: 'finish', reason: 'tool_calls', stopSequence: null, usage: LONG_USAGE },
]

/** The same, ended by a limit within the arguments of the first call. */
export const CUT: Script = [
  ...CALLING.slice(0, 7),
  { type: 'finish', reason: 'length', stopSequence: null, usage: LONG_USAGE },
]

/** Thinks and answers. */
export const THINKING: Script = [
  ...CALLING.slice(0, 5),
  { type: 'finish', reason: 'stop', stopSequence: null, usage: LONG_USAGE },
]

export const WEATHER_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
} as const

/** What a body becomes on its way to the host, and what the answer says was ignored. */
export async function askedOf(
  path: string,
  body: object,
): Promise<{ request: GenerationRequest; ignored: string | null }> {
  const host = scriptedHost()
  const response = await send(host, path, { body })
  const text = await response.text()
  const [request] = host.requests
  if (response.status !== 200 || !request) throw new Error(`${response.status}: ${text}`)
  return { request, ignored: response.headers.get('x-inorigin-ignored') }
}

/** The probabilities of a token and of one that was less likely. */
export const tokenOf = (text: string): TokenLogprob => {
  const bytes = Array.from(new TextEncoder().encode(text))
  return {
    text,
    bytes,
    logprob: -0.25,
    top: [
      { text, bytes, logprob: -0.25 },
      { text: '', bytes: [], logprob: -Infinity },
    ],
  }
}
