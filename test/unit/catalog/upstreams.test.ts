/** Upstream implementations of a catalog: their form, the consent of the app, and the explanation. */
import { afterEach, expect, test, vi } from 'vitest'
import { findImplementation } from '../../../src/catalog/choose-implementation.ts'
import { findUpstream, withUpstreamReasons } from '../../../src/catalog/upstreams.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { model, predictor, thrownBy, validate as validateCatalog } from './entries.ts'

afterEach(() => vi.unstubAllGlobals())

const SCOPE = 'https://app.test/shop/'
const FAR = { id: 'server', engine: 'upstream', url: 'https://llm.test/v1/', model: 'big' }

interface Given {
  implementations: readonly object[]
  isGiven?: boolean
  allowed?: readonly string[]
  entry?: object
}

/** Validates a catalog that the app passed, or that came from a URL of another origin. */
function validate({ implementations, isGiven = true, allowed = [], entry = model() }: Given) {
  const document = { version: 1, entries: [{ ...entry, implementations }] }
  const base = isGiven ? SCOPE : 'https://catalogs.test/a.json'
  const upstreams = { scope: SCOPE, isGiven, allowed }
  return validateCatalog(document, { base, upstreams }).entries[0] ?? model()
}

const problemsOf = (given: Given) => thrownBy(() => validate(given)).details?.['problems']

test('The smallest entry has no device and no resources', () => {
  const { implementations, upstreams } = validate({ implementations: [FAR] })
  expect(implementations).toEqual([])
  expect(upstreams).toEqual([
    {
      id: 'server',
      url: 'https://llm.test/v1',
      model: 'big',
      when: ['unavailable'],
      forwardAuthorization: false,
      continues: false,
      unsupported: [],
      refusal: null,
    },
  ])
})

test.each([
  [{ url: 'v1' }, '.url: "v1" is inside the /v1 that inorigin itself answers'],
  [{ url: '/shop/v1/models' }, '.url: "/shop/v1/models" is inside the /v1'],
  [{ url: 'ftp://a.test' }, '.url: "ftp://a.test" is not an http or https URL'],
  [{ url: 'https://me:pw@a.test' }, '.url: "https://me:pw@a.test" must not have'],
  [{ url: 'https://a.test/?key=1' }, '.url: "https://a.test/?key=1" must not have'],
  [{ when: ['never', 'busy'] }, '.when: "never" excludes all other conditions'],
  [{ url: 'https://a.test/..%2fadmin' }, '.url: "https://a.test/..%2fadmin" must not have an'],
  [{ when: 'sometimes' }, '.when: '],
  [{ when: ['busy', 'interrupted'] }, '.when: "interrupted" needs `continues: true`'],
  [{ device: 'wasm' }, '.device: '],
])('%j is refused', (change, problem) => {
  const { implementations: local } = model()
  expect(problemsOf({ implementations: [...local, { ...FAR, ...change }] })).toEqual([
    expect.stringContaining(`entries[0].implementations[1]${problem}`),
  ])
})

test('A predictor must embed texts, and ids are unique', () => {
  const entry = predictor()
  expect(problemsOf({ entry, implementations: [...entry.implementations, FAR] })).toEqual([
    'entries[0].implementations: upstream answers only for models and embeddings',
  ])
  const twice = [...model().implementations, { ...FAR, id: 'wasm' }]
  expect(String(problemsOf({ implementations: twice }))).toContain('wasm')
})

test.each([
  [true, 'https://llm.test/v1', [], true],
  [false, 'https://llm.test/v1', [], false],
  [false, 'https://llm.test/v1', ['https://llm.test'], true],
  [false, 'https://llm.test/v1', ['https://llm.test/v1/'], true],
  [false, 'https://llm.test/v10', ['https://llm.test/v1'], false],
  [false, 'https://llm.test.evil.test/v1', ['https://llm.test'], false],
  [false, 'http://llm.test/v1', ['https://llm.test'], false],
  // The origin of the app needs no consent, that of the catalog does.
  [false, 'https://app.test/llm/v1', [], true],
  [false, '/llm/v1', [], false],
])(
  'With a catalog of the app: %s, %s is used if %j are allowed: %s',
  (isGiven, url, allowed, isUsed) => {
    const entry = validate({ implementations: [{ ...FAR, url }], isGiven, allowed })
    expect(findUpstream(entry, 'unavailable') !== undefined).toBe(isUsed)
    const [reason] = withUpstreamReasons(entry, []).reasons
    if (!isUsed) expect(reason?.why).toContain('serve({ upstreams })')
  },
)

const DEVICE: Capabilities = {
  webgpu: null,
  wasm: { simd: true, threads: false, jspi: true },
  memory: null,
  cores: 1,
}

test('The explanation says why an upstream is used or not', () => {
  const explain = (when: string | string[], local = model().implementations) => {
    const entry = validate({ implementations: [...local, { ...FAR, when }] })
    return withUpstreamReasons(entry, findImplementation(entry, DEVICE).reasons)
  }
  expect(explain('always')).toMatchObject({
    chosen: 'server',
    reasons: [
      { id: 'wasm', chosen: false, why: expect.stringContaining('server always answers') },
      { id: 'server', device: 'upstream', chosen: true },
    ],
  })
  expect(explain(['busy', 'too-long'])).toMatchObject({
    chosen: 'wasm',
    reasons: [{ chosen: true }, { why: expect.stringContaining('busy, too-long; now wasm') }],
  })
  expect(explain('never')).toMatchObject({ chosen: 'wasm' })
  expect(explain('unavailable', [])).toMatchObject({ chosen: 'server' })
  expect(explain('busy', [])).toMatchObject({ chosen: null })
})

test('An offline browser uses only servers on the same machine', () => {
  vi.stubGlobal('navigator', { onLine: false })
  const find = (url: string) =>
    findUpstream(validate({ implementations: [{ ...FAR, url }] }), 'unavailable')
  expect(find('https://llm.test/v1')).toBeUndefined()
  expect(find('http://localhost:8000/v1')).toBeDefined()
})
