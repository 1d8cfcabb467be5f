/** The endpoints of `inorigin/testing` in place of those of a page. `playground.ts` bundles it for the playground. */
import { InoriginError, type ErrorDetails, type ErrorKind } from '../../src/error.ts'
import { createTestServer, type ScriptedAnswer } from '../../src/extras/testing/server.ts'

/** An answer of the script, as a test passes it to the page. */
export interface PlannedAnswer extends Omit<Exclude<ScriptedAnswer, string>, 'error'> {
  error?: { kind: ErrorKind; message: string } & ErrorDetails
  /** `true` for a stream that does not end by itself. */
  isOpen?: boolean
}

export interface ScriptedWindow extends Window {
  /** Answers to come. Without one, an answer is its number, such as `Answer 1.` */
  script: PlannedAnswer[]
  /** Bodies of the requests so far. */
  bodies: Record<string, unknown>[]
  /** Number of open answers that the page has aborted. */
  aborted: number
}

const ENDPOINT = /\/v1\/(?:chat\/completions|messages|responses)$/
const MODELS = ['@inorigin/guide', '@inorigin/glance', '@test/second'] as const

/** Answers the generation requests of this page by `window.script`. */
export function startScript(): void {
  const real = window.fetch
  const initial = { script: [], bodies: [], aborted: 0 }
  const scripted = Object.assign(window as unknown as ScriptedWindow, initial)
  const planned: PlannedAnswer[] = []
  const answers = () => toAnswer(planned.shift() ?? {})
  const server = createTestServer({ models: MODELS.map((tag) => ({ tag, answers })) })

  window.fetch = async (input, init) => {
    if (!ENDPOINT.test(String(input))) return real(input, init)
    scripted.bodies.push(JSON.parse(String(init?.body)))
    const plan = scripted.script.shift() ?? { text: `Answer ${scripted.bodies.length}.` }
    planned.push(plan)
    const response = await server.fetch(input, init)
    if (!plan.isOpen || !response.body) return response
    const endless = new TransformStream<Uint8Array, Uint8Array>({
      flush: () =>
        new Promise((_, reject) => {
          init?.signal?.addEventListener('abort', ({ target }) => {
            scripted.aborted += 1
            reject((target as AbortSignal).reason)
          })
        }),
    })
    return new Response(response.body.pipeThrough(endless), response)
  }
}

function toAnswer({ error, ...parts }: PlannedAnswer): ScriptedAnswer {
  if (!error) return parts
  const { kind, message, ...details } = error
  return { ...parts, error: new InoriginError(kind, message, details) }
}
