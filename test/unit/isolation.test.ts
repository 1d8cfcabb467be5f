/** Which headers isolate the pages of a browser, and what they are added to. */
import { describe, expect, test } from 'vitest'
import {
  chooseIsolationPolicy,
  headersFor,
  withHeaders,
  type BrowserIdentity,
} from '../../sw/isolation.ts'

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

describe('the policy of a browser', () => {
  test.each([
    ['Chromium', chromium('137')],
    ['Chromium with a version of more digits', chromium('1000')],
    ['Edge', chromium('156', 'Windows', 'Microsoft Edge')],
    ['Chrome on Android', chromium('146', 'Android', 'Google Chrome')],
  ])('%s gets the document policy', (_name, browser) => {
    expect(chooseIsolationPolicy(browser)).toEqual(DOCUMENT_POLICY)
  })

  test.each([
    ['Firefox', firefox(119), 'credentialless'],
    ['Safari', webkit('Version/18.1'), 'require-corp'],
    ['Chrome on iOS', webkit('CriOS/146.0.0.0'), 'require-corp'],
    ['Firefox on iOS', webkit('FxiOS/119.0'), 'require-corp'],
  ])('%s gets an embedder policy', (_name, browser, value) => {
    expect(chooseIsolationPolicy(browser)).toEqual(embedderPolicy(value))
  })

  test.each([
    ['Chromium before the document policy', chromium('136')],
    ['Chrome on Android before it', chromium('145', 'Android', 'Google Chrome')],
    ["Android's WebView", chromium('156', 'Android', 'Android WebView')],
    ['Chromium without brands', { userAgent: chromium('89').userAgent }],
    ['Firefox before credentialless', firefox(118)],
    ['Firefox on Android', firefox(153, 'Android 16; Mobile')],
    ['an unknown browser', { userAgent: 'Ladybird/1.0' }],
    ['brands without Chromium', { userAgent: '', userAgentData: { brands: [], platform: '' } }],
  ])('%s gets none', (_name, browser) => {
    expect(chooseIsolationPolicy(browser)).toBeNull()
  })
})

describe('the headers of a request', () => {
  const policies = [DOCUMENT_POLICY, embedderPolicy('credentialless')] as const

  test.each(policies)('navigations and scripts of workers: %o', (policy) => {
    expect(headersFor({ mode: 'navigate', destination: 'document' }, policy)).toBe(policy.document)
    expect(headersFor({ mode: 'navigate', destination: 'iframe' }, policy)).toBe(policy.document)
    expect(headersFor({ mode: 'same-origin', destination: 'worker' }, policy)).toBe(policy.worker)
  })

  test.each(policies)('no others: %o', (policy) => {
    for (const destination of ['', 'script', 'style', 'image', 'sharedworker'] as const) {
      expect(headersFor({ mode: 'cors', destination }, policy)).toBeNull()
    }
  })
})

describe('a response', () => {
  const { document } = embedderPolicy('credentialless')
  const page = (headers: Record<string, string> = {}, status = 200) =>
    new Response('page', {
      status,
      statusText: 'Fine',
      headers: { 'content-type': 'text/html; charset=utf-8', ...headers },
    })

  test('keeps its status, headers and body', async () => {
    const given = page({ 'x-own': 'yes' }, 404)
    const { body } = given
    const response = withHeaders(given, document)
    expect(response.body).toBe(body)
    expect([response.status, response.statusText]).toEqual([404, 'Fine'])
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-type': 'text/html; charset=utf-8',
      'x-own': 'yes',
      ...document,
    })
    expect(await response.text()).toBe('page')
  })

  test('keeps what the web server sent', () => {
    const opener = page({ 'cross-origin-opener-policy': 'same-origin-allow-popups' })
    expect(Object.fromEntries(withHeaders(opener, document).headers)).toMatchObject({
      'cross-origin-opener-policy': 'same-origin-allow-popups',
      'cross-origin-embedder-policy': 'credentialless',
    })
    for (const policy of ['cross-origin-embedder-policy', 'document-isolation-policy']) {
      const isolated = page({ [policy]: 'unsafe-none' })
      expect(withHeaders(isolated, document)).toBe(isolated)
    }
  })

  test.each(['text/html', 'application/xhtml+xml', 'text/javascript; charset=utf-8'])(
    'of type %s gets the headers',
    (type) => {
      const { headers } = withHeaders(page({ 'content-type': type }), document)
      expect(Object.fromEntries(headers)).toMatchObject(document)
    },
  )

  test.each(['application/pdf', 'application/octet-stream', 'text/plain; note=html', ''])(
    'of type "%s" is not changed, because it may be a long download',
    (type) => {
      const download = page({ 'content-type': type })
      expect(withHeaders(download, document)).toBe(download)
    },
  )

  test('without a body is one', () => {
    const empty = new Response(null, { status: 204, headers: { 'content-type': 'text/html' } })
    const response = withHeaders(empty, document)
    expect([response.status, response.body]).toEqual([204, null])
  })

  test('that is a redirect for the browser, or an error, is not changed', () => {
    const failed = Response.error()
    expect(withHeaders(failed, document)).toBe(failed)
  })
})
