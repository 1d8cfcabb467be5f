/** Both official SDKs and the requests that are sent with them, bundled for a page. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { CHAT, MESSAGES, type Clients } from './requests.ts'

export { CHAT, MESSAGES }

/** Creates clients for the server of the page. */
export function createClients(server: { origin: string; baseURL: string }, model: string): Clients {
  const given = { apiKey: 'none', dangerouslyAllowBrowser: true, maxRetries: 0 }
  return {
    openai: new OpenAI({ ...given, baseURL: server.baseURL }),
    anthropic: new Anthropic({ ...given, baseURL: server.origin }),
    model,
  }
}
