import OpenAI from 'openai'
import { server } from './server.ts'

export const openai = new OpenAI({
  baseURL: server.baseURL,
  apiKey: 'none',
  dangerouslyAllowBrowser: true,
})
