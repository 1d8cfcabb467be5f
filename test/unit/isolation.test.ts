/** Which headers isolate the pages of a browser, and to which responses they are added. */
import { describe, expect, test } from 'vitest'
import {
  chooseIsolationPolicy,
  headersFor,
  withHeaders,
  type BrowserIdentity,
} from '../../sw/files.ts'

const DOCUMENT_POLICY = {
  document: { 'document-isolation-policy': 'isolate-and-credentialless' },
  worker: null,
}

const embedderPolicy = (value: string) => ({
  document: {
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-embedder-policy': value,
  },
  worker: { 'cross-origin-embedder-policy': value },
})

function chromium(version: string, platform = 'Linux', ...more: string[]): BrowserIdentity {
  const brands = ['Not)A;Brand', 'Chromium', ...more].map((brand) => ({ brand, version }))
  // The user agent of Chromium names the others, too.
  const userAgent = `Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Safari/537.36`
  return { userAgent, userAgentData: { brands, platform } }
}

const firefox = (version: number, system = 'X11; Linux x86_64') => ({
  userAgent: `Mozilla/5.0 (${system}; rv:${version}.0) Gecko/20100101 Firefox/${version}.0`,
})

const webkit = (name: string) => ({
  userAgent: `Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 (KHTML, like Gecko) ${name} Safari/605.1.15`,
})

const unbranded = { userAgent: '', userAgentData: { brands: [], platform: '' } }

test.each<[string, BrowserIdentity, ReturnType<typeof chooseIsolationPolicy>]>([
  ['Chromium', chromium('137'), DOCUMENT_POLICY],
  ['Chromium with a version of more digits', chromium('1000'), DOCUMENT_POLICY],
  ['Edge', chromium('156', 'Windows', 'Microsoft Edge'), DOCUMENT_POLICY],
  ['Chrome on Android', chromium('146', 'Android', 'Google Chrome'), DOCUMENT_POLICY],
  ['Firefox', firefox(119), embedderPolicy('credentialless')],
  ['Safari', webkit('Version/18.1'), embedderPolicy('require-corp')],
  ['Chrome on iOS', webkit('CriOS/146.0.0.0'), embedderPolicy('require-corp')],
  ['Firefox on iOS', webkit('FxiOS/119.0'), embedderPolicy('require-corp')],
  ['Chromium before the document policy', chromium('136'), null],
  ['Chrome on Android before it', chromium('145', 'Android', 'Google Chrome'), null],
  ["Android's WebView", chromium('156', 'Android', 'Android WebView'), null],
  ['Chromium without brands', { userAgent: chromium('89').userAgent }, null],
  ['Firefox before credentialless', firefox(118), null],
  ['Firefox on Android', firefox(153, 'Android 16; Mobile'), null],
  ['an unknown browser', { userAgent: 'Ladybird/1.0' }, null],
  ['brands without Chromium', unbranded, null],
])('%s gets its policy', (_name, browser, policy) => {
  expect(chooseIsolationPolicy(browser)).toEqual(policy)
})

test.each([DOCUMENT_POLICY, embedderPolicy('credentialless')])(
  'headers are for navigations and scripts of workers, and no others: %o',
  (policy) => {
    for (const destination of ['document', 'iframe'] as const)
      expect(headersFor({ mode: 'navigate', destination }, policy)).toBe(policy.document)
    expect(headersFor({ mode: 'same-origin', destination: 'worker' }, policy)).toBe(policy.worker)
    for (const destination of ['', 'script', 'style', 'image', 'sharedworker'] as const)
      expect(headersFor({ mode: 'cors', destination }, policy)).toBeNull()
  },
)

describe('a response', () => {
  const { document } = embedderPolicy('credentialless')
  const page = (headers: Record<string, string> = {}, status = 200) =>
    new Response('page', {
      status,
      statusText: 'Fine',
      headers: { 'content-type': 'text/html; charset=utf-8', ...headers },
    })
  const headersOf = (response: Response) => Object.fromEntries(response.headers)

  test('keeps its status, headers and body', async () => {
    const given = page({ 'x-own': 'yes' }, 404)
    const { body } = given
    const response = withHeaders(given, document)
    expect(response.body).toBe(body)
    expect([response.status, response.statusText]).toEqual([404, 'Fine'])
    expect(headersOf(response)).toEqual({
      'content-type': 'text/html; charset=utf-8',
      'x-own': 'yes',
      ...document,
    })
    expect(await response.text()).toBe('page')
  })

  test('keeps the policies that the web server sent', () => {
    const opener = page({ 'cross-origin-opener-policy': 'same-origin-allow-popups' })
    expect(headersOf(withHeaders(opener, document))).toMatchObject({
      'cross-origin-opener-policy': 'same-origin-allow-popups',
      'cross-origin-embedder-policy': 'credentialless',
    })
  })

  test.each(['text/html', 'application/xhtml+xml', 'text/javascript; charset=utf-8'])(
    'of type %s gets the headers',
    (type) => {
      const response = withHeaders(page({ 'content-type': type }), document)
      expect(headersOf(response)).toMatchObject(document)
    },
  )

  test.each<[string, Response]>([
    // A download may be long.
    ...['application/pdf', 'application/octet-stream', 'text/plain; note=html', ''].map(
      (type): [string, Response] => [`of type "${type}"`, page({ 'content-type': type })],
    ),
    ...['cross-origin-embedder-policy', 'document-isolation-policy'].map(
      (policy): [string, Response] => [`with a ${policy}`, page({ [policy]: 'unsafe-none' })],
    ),
    ['that is a redirect for the browser, or an error,', Response.error()],
  ])('%s is not changed', (_, given) => {
    expect(withHeaders(given, document)).toBe(given)
  })

  test('without a body stays without one', () => {
    const empty = new Response(null, { status: 204, headers: { 'content-type': 'text/html' } })
    const response = withHeaders(empty, document)
    expect([response.status, response.body]).toEqual([204, null])
  })
})
