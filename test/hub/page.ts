/** What `npm run test:hub` runs inside the page. */
import { EFFORTS } from '../../demo/bench/effort.ts'
import { measure } from '../../demo/bench/measure.ts'
import type { Effort, Measurements, UsedImplementation } from '../../demo/bench/result.ts'
import type { Server, Tag } from '../../src/index.ts'
import { checkSchema, checkSentence, checkTool, type Ask } from './checks.ts'

/** `ok`, what is wrong, or `null` if the model does not support what is checked. */
export interface CheckResults {
  sentence: string
  tool: string | null
  schema: string | null
}

export interface HubPage {
  /** Looks the model up on its hub. Resolves with the implementation that this device would run. */
  plan(tag: Tag): Promise<UsedImplementation>
  /** Downloads and loads the model, and measures it. */
  measure(tag: Tag): Promise<Measurements>
  check(tag: Tag): Promise<CheckResults>
  /** Unloads the model and deletes its files. Resolves with the bytes that are still stored. */
  remove(tag: Tag): Promise<number>
}

/** One round with the prompt of a normal benchmark: a large model may take minutes for it. */
const EFFORT: Effort = { ...EFFORTS.normal, rounds: 1, longContextTokens: 1_000 }

interface ModelJson {
  capabilities: { tools: { supported: boolean }; structured_outputs: { supported: boolean } }
}

export function openHubPage(server: Server): HubPage {
  return {
    async plan(tag) {
      // The answer names files that are not downloaded yet.
      await post(server, 'predictions', { tag, clientId: 'test-hub' })
      const { reasons } = await server.explain(tag)
      const used = reasons.find(({ chosen }) => chosen)
      if (!used || used.device === 'upstream')
        throw new Error(reasons.map(({ id, why }) => `${id}: ${why}`).join('. '))
      return { id: used.id, device: used.device, bytes: used.bytes ?? 0 }
    },
    measure: (tag) =>
      measure({
        server,
        tag,
        effort: EFFORT,
        signal: new AbortController().signal,
        onProgress: (phase) => console.log(`${tag}: ${phase}`),
      }),
    async check(tag) {
      const ask: Ask = (body) => post(server, 'chat/completions', { model: tag, ...body })
      const response = await fetch(`${server.baseURL}/models/${tag}`)
      const { tools, structured_outputs } = ((await response.json()) as ModelJson).capabilities
      return {
        sentence: await checkSentence(ask),
        tool: tools.supported ? await checkTool(ask) : null,
        schema: structured_outputs.supported ? await checkSchema(ask) : null,
      }
    },
    async remove(tag) {
      await server.storage.remove(tag)
      const stored = await server.storage.list()
      return stored.find((each) => each.tag === tag)?.bytes ?? 0
    },
  }
}

async function post<T>(server: Server, path: string, body: object): Promise<T> {
  const response = await fetch(`${server.baseURL}/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const json = (await response.json()) as T & { error?: { message: string } }
  if (!response.ok) throw new Error(json.error?.message ?? `status ${response.status}`)
  return json
}
