/**
 * `npm run test:upstream -- --url URL [--model NAME] [--key KEY]`: asks any server that speaks chat
 * completions as an upstream implementation, in all styles, and prints what passed. `--reasons` and
 * `--continues` add the cases of servers that can do that.
 */
import { parseArgs } from 'node:util'
import type { ModelEntry } from '../../src/catalog/schema.ts'
import { resolveUpstream } from '../../src/catalog/upstreams.ts'
import { generateUpstream } from '../../src/engine/upstream/index.ts'
import type { Host } from '../../src/types/index.ts'
import { scriptedHost } from '../unit/wire/scripted-host.ts'
import { CASES, type Ability, type Ask } from './cases.ts'
import { handle } from '../../src/wire/handler.ts'

const USAGE =
  'npm run test:upstream -- --url URL [--model NAME] [--key KEY] [--reasons] [--continues]'
const MAX_OUTPUT_TOKENS = 1_024

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      url: { type: 'string' },
      model: { type: 'string', default: 'default' },
      key: { type: 'string' },
      reasons: { type: 'boolean', default: false },
      continues: { type: 'boolean', default: false },
    },
  })
  const { url, model, key, ...abilities } = values
  if (url === undefined) throw new Error(`--url is missing. Usage: ${USAGE}`)
  const host = openHost({ url, model, ...abilities }, key ?? null)
  const cases = CASES.filter(({ needs }) => needs === undefined || abilities[needs])
  let failures = 0
  for (const { name, run } of cases) {
    const began = performance.now()
    const failure = await run(askOf(host)).then(
      () => null,
      (error: unknown) => String(error),
    )
    failures += failure === null ? 0 : 1
    const seconds = ((performance.now() - began) / 1_000).toFixed(1)
    console.log(
      `${failure === null ? 'passed' : 'FAILED'}  ${name} (${seconds} s) ${failure ?? ''}`,
    )
  }
  console.log(`${cases.length - failures} of ${cases.length} passed`)
  if (failures > 0) process.exitCode = 1
}

/** Returns a host whose only model is the one on the server. */
function openHost(
  { url, model, reasons, continues }: { url: string; model: string } & Record<Ability, boolean>,
  key: string | null,
): Host {
  const policy = { scope: '', isGiven: true, allowed: [] }
  const upstream = resolveUpstream(
    { id: 'server', engine: 'upstream', url, model, forwardAuthorization: true, continues },
    url,
    policy,
    (path, problem) => {
      throw new Error(`${path} ${problem}`)
    },
  )
  const traits: Pick<ModelEntry, 'maxOutputTokens'> & { thinks: boolean } = {
    maxOutputTokens: MAX_OUTPUT_TOKENS,
    thinks: reasons,
  }
  return scriptedHost({
    overrides: {
      generate: async (request, { signal }) => {
        const call = { upstream, key, signal, getHeaders: async () => ({}) }
        return { events: generateUpstream(request, traits, call) }
      },
    },
  })
}

const askOf =
  (host: Host): Ask =>
  (path, body, signal) => {
    const request = new Request(`http://localhost/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: '@test/upstream', ...body }),
      ...(signal && { signal }),
    })
    return handle(request, host)
  }

await main()
