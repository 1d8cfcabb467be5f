/**
 * A client of predictors: what such clients send and what they read. Each answer is read as JSON
 * before its status is looked at, and an error is the first of a list.
 */
import type { Settings } from '../client.ts'
import type { PredictorRequest } from '../features.ts'
import { parseFrames } from '../../support/sse-grammar.ts'
import { ensure, equal } from '../judge.ts'
import type { Check } from '../suite.ts'

interface Prediction {
  id: string
  tag: string
  configuration: string
  resources: Array<{ type: string; url: string; name?: string }>
}

class RequestError extends Error {
  readonly status: number
  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

export function predictorChecks({ baseURL, apiKey }: Settings): Record<PredictorRequest, Check> {
  async function request<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(baseURL + path, {
      method: body ? 'POST' : 'GET',
      headers: {
        Authorization: `Bearer ${apiKey}`,
        ...(body && { 'Content-Type': 'application/json' }),
      },
      body: body && JSON.stringify(body),
    })
    const payload = (await response.json()) as T & { errors?: Array<{ message: string }> }
    if (response.ok) return payload
    const message = payload.errors?.[0]?.message ?? 'An unknown error occurred'
    throw new RequestError(message, response.status)
  }

  const statusOf = async (answer: Promise<unknown>): Promise<[number, string]> => {
    const thrown = await answer.then(
      () => undefined,
      (error: unknown) => error,
    )
    ensure(thrown instanceof RequestError, `it is told as ${String(thrown)}`)
    return [thrown.status, thrown.message]
  }
  const inputs = () => ({ image: { data: drawing(), dtype: 'image' } })
  const remote = { tag: '@inorigin/digits', clientId: 'conformance', acceleration: 'auto' }

  const refused = async (answer: Promise<unknown>): Promise<string> => {
    const [status, message] = await statusOf(answer)
    equal(status, 404, 'the status')
    // What there is instead follows.
    return message.replace(/;.*/, '')
  }
  const predict = () =>
    request<Prediction>('/predictions', {
      tag: '@inorigin/digits',
      clientId: 'conformance',
      configurationId: 'conformance',
    })

  return {
    user: () => refused(request('/users')),
    async rawModel() {
      const { id } = await request<{ id: string }>('/models/@inorigin/guide')
      equal(id, '@inorigin/guide', 'the id')
    },
    async predictor() {
      const predictor = await request<{
        tag: string
        signature: { inputs: unknown[]; outputs: unknown[] }
      }>('/predictors/@inorigin/digits')
      equal(predictor.tag, '@inorigin/digits', 'the tag')
      ensure(predictor.signature.inputs.length > 0, 'there are no inputs')
      ensure(predictor.signature.outputs.length > 0, 'there are no outputs')
    },
    async unknownPredictor() {
      const [status] = await statusOf(request('/predictors/@nobody/nothing'))
      equal(status, 404, 'the status')
    },
    async prediction() {
      const { tag, configuration, resources } = await predict()
      equal(tag, '@inorigin/digits', 'the tag')
      ensure(configuration !== '', 'there is no configuration')
      ensure(resources.length > 0, 'there are no resources')
    },
    async samePrediction() {
      const [first, second] = [await predict(), await predict()]
      equal([second.id, second.configuration], [first.id, first.configuration], 'the second')
    },
    async resource() {
      for (const { type, url } of (await predict()).resources) {
        const response = await fetch(url)
        ensure(response.ok, `${type} is answered with ${response.status}`)
        ensure((await response.arrayBuffer()).byteLength > 0, `${type} is empty`)
      }
    },
    async unknownTag() {
      const answer = request('/predictions', { tag: '@nobody/nothing', clientId: 'conformance' })
      equal((await statusOf(answer))[0], 404, 'the status')
    },
    async remote() {
      const body = { ...remote, inputs: inputs() }
      judgeRun(await request<Run>('/predictions/remote', body))
    },
    async remoteStream() {
      const body = JSON.stringify({ ...remote, inputs: inputs(), stream: true })
      const headers = {
        Authorization: `Bearer ${apiKey}`,
        Accept: 'text/event-stream',
        'Content-Type': 'application/json',
      }
      const response = await fetch(`${baseURL}/predictions/remote`, {
        method: 'POST',
        headers,
        body,
      })
      ensure(response.ok, `it is answered with ${response.status}`)
      // Such clients take each event for a prediction, and the last only with an empty line behind it.
      const frames = parseFrames(await response.text())
      equal(
        frames.map(({ event }) => event),
        ['prediction'],
        'the events',
      )
      for (const { data } of frames) judgeRun(JSON.parse(data) as Run)
    },
    async invalidInput() {
      const image = { data: 'data:image/png;base64,AAAA', dtype: 'image' }
      const answer = request('/predictions/remote', { ...remote, inputs: { image } })
      const [status, message] = await statusOf(answer)
      equal(status, 400, 'the status')
      ensure(message.includes('image'), `the message is ${message}`)
    },
  }
}

interface Run {
  tag: string
  error: string | null
  results: Array<{ data: string; dtype: string }> | null
}

function judgeRun({ tag, error, results }: Run): void {
  equal([tag, error], ['@inorigin/digits', null], 'the tag and the error')
  equal(
    results?.map(({ dtype }) => dtype),
    ['string', 'float32', 'float32'],
    'the types',
  )
  for (const { data } of results ?? []) {
    ensure(
      /^data:[\w/+.-]+;base64,[A-Za-z0-9+/]+=*$/.test(data),
      `a result is ${data.slice(0, 60)}`,
    )
  }
}

/** A drawn one, as the file of an image. */
function drawing(): string {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 64
  const context = canvas.getContext('2d')
  context?.fillRect(29, 10, 6, 44)
  return canvas.toDataURL('image/png')
}
