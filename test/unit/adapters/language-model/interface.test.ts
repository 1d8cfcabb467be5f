import { expect, onTestFinished, test, vi } from 'vitest'
import { installLanguageModel } from '../../../../src/adapters/language-model/index.ts'
import { InoriginError } from '../../../../src/error.ts'
import { createGate, open, rejection, TAG } from './open.ts'

/** Calls a method as JavaScript can, without its types. */
const call = (target: object, method: string, ...given: unknown[]): Promise<unknown> =>
  (Reflect.get(target, method) as (...args: unknown[]) => Promise<unknown>).apply(target, given)

test('the interface has the shape of Web IDL', async () => {
  const { LanguageModel } = open()
  expect(() => new LanguageModel(undefined as never)).toThrow(TypeError)
  const session = await LanguageModel.create()
  expect(session).toBeInstanceOf(LanguageModel)
  expect(session).toBeInstanceOf(EventTarget)
  expect(String(session)).toBe('[object LanguageModel]')
  expect(Object.keys(session)).toEqual([])
  expect(Object.keys(LanguageModel.prototype).toSorted()).toEqual([
    'append',
    'clone',
    'contextUsage',
    'contextWindow',
    'destroy',
    'measureContextUsage',
    'oncontextoverflow',
    'prompt',
    'promptStreaming',
    'samplingMode',
  ])
  expect(Object.keys(LanguageModel).toSorted()).toEqual(['availability', 'create'])
  expect([LanguageModel.create.length, session.prompt.length]).toEqual([0, 1])
  expect(() => LanguageModel.prototype.contextUsage).toThrow('Illegal invocation')
  expect(await rejection(LanguageModel.prototype.prompt('a'))).toBeInstanceOf(TypeError)
})

test('the former names come with legacy', async () => {
  const { LanguageModel, server } = open({ legacy: true })
  expect(await LanguageModel.params?.()).toEqual({
    defaultTopK: 40,
    maxTopK: 128,
    defaultTemperature: 1,
    maxTemperature: 2,
  })
  const session = await LanguageModel.create({ topK: 3.7, temperature: 9 })
  expect(session).toMatchObject({ topK: 3, temperature: 2, samplingMode: null, inputUsage: 0 })
  expect(session.inputQuota).toBe(session.contextWindow)
  expect(await session.measureInputUsage?.('a b')).toBe(2)
  expect(session.onquotaoverflow).toBe(null)
  await session.prompt('a')
  expect(server.requests[0]?.sampling).toMatchObject({ topK: 3, temperature: 2 })
  const only = await rejection(LanguageModel.create({ topK: 3 }))
  expect(only).toMatchObject({ name: 'NotSupportedError' })
  const below = LanguageModel.create({ topK: 0, temperature: 1 })
  expect(await rejection(below)).toBeInstanceOf(RangeError)
  const both = LanguageModel.create({ topK: 1, temperature: 1, samplingMode: 'balanced' })
  expect(await rejection(both)).toBeInstanceOf(TypeError)
})

test.each([
  ['no argument', []],
  ['a message without content', [[{ role: 'user' }]]],
  ['an unknown role', [[{ role: 'nobody', content: 'a' }]]],
  ['an unknown type', [[{ role: 'user', content: [{ type: 'soup', value: 'a' }] }]]],
  ['a symbol', [Symbol('a')]],
  [
    'a late message of the system',
    [
      [
        { role: 'user', content: 'a' },
        { role: 'system', content: 'b' },
      ],
    ],
  ],
  ['a constraint that is no object', ['a', { responseConstraint: 'b' }]],
  ['an omitted constraint that is not there', ['a', { omitResponseConstraintInput: true }]],
  ['a signal that is none', ['a', { signal: {} }]],
  ['options that are no object', ['a', 1]],
])('prompt() with %s rejects with a TypeError', async (_what, given) => {
  const { LanguageModel } = open()
  const session = await LanguageModel.create()
  expect(await rejection(call(session, 'prompt', ...given))).toBeInstanceOf(TypeError)
})

test.each([
  [
    'SyntaxError',
    [
      { role: 'assistant', content: 'a', prefix: true },
      { role: 'user', content: 'b' },
    ],
  ],
  ['SyntaxError', [{ role: 'user', content: 'a', prefix: true }]],
  ['NotSupportedError', [{ role: 'user', content: [{ type: 'audio', value: new Blob() }] }]],
  ['NotSupportedError', [{ role: 'assistant', content: [{ type: 'image', value: new Blob() }] }]],
])('prompt() rejects with %s where the specification says so', async (name, input) => {
  const { LanguageModel } = open()
  const session = await LanguageModel.create()
  expect(await rejection(call(session, 'prompt', input))).toMatchObject({ name })
})

test('everything that is no list is a text', async () => {
  const { LanguageModel } = open()
  const session = await LanguageModel.create()
  const answers = []
  for (const input of [null, undefined, {}, 1]) answers.push(await call(session, 'prompt', input))
  expect(answers).toEqual(
    ['null', 'undefined', '[object Object]', '1'].map((one) => `Heard: ${one}`),
  )
})

test('languages are checked, and inputs and outputs that the model does not have', async () => {
  const { LanguageModel } = open()
  const ask = (languages: string[]) =>
    LanguageModel.availability({ expectedInputs: [{ type: 'text', languages }] })
  expect(await ask(['EN', 'ja'])).toBe('downloadable')
  expect(await ask(['unk'])).toBe('unavailable')
  expect(await rejection(ask(['en-abc-invalid']))).toBeInstanceOf(RangeError)
  expect(await LanguageModel.availability({ expectedInputs: [{ type: 'image' }] })).toBe(
    'downloadable',
  )
  const audio = { expectedInputs: [{ type: 'audio' as const }] }
  expect(await LanguageModel.availability(audio)).toBe('unavailable')
  expect(await rejection(LanguageModel.create(audio))).toMatchObject({ name: 'NotSupportedError' })
  const image = { expectedOutputs: [{ type: 'image' as const }] }
  expect(await LanguageModel.availability(image)).toBe('unavailable')

  const { LanguageModel: English } = open({ languages: ['en'] })
  const british = { expectedOutputs: [{ type: 'text' as const, languages: ['en-GB'] }] }
  expect(await English.availability(british)).toBe('downloadable')
  const french = { expectedOutputs: [{ type: 'text' as const, languages: ['fr'] }] }
  expect(await English.availability(french)).toBe('unavailable')
})

test('a download is reported from 0 to 1, and needs a click', async () => {
  const gate = createGate()
  const { LanguageModel } = open({ load: () => gate.opened })
  const userActivation = { hasBeenActive: false }
  vi.stubGlobal('navigator', { userActivation })
  expect(await rejection(LanguageModel.create())).toMatchObject({ name: 'NotAllowedError' })
  userActivation.hasBeenActive = true
  const seen: number[] = []
  const creating = LanguageModel.create({
    monitor: (monitor) => {
      monitor.ondownloadprogress = ({ loaded, total }) => seen.push(loaded / total)
    },
  })
  await vi.waitUntil(() => seen.length > 0, { timeout: 60_000 })
  expect(await LanguageModel.availability()).toBe('downloading')
  gate.open()
  await creating
  expect(seen[0]).toBe(0)
  expect(seen.at(-1)).toBe(1)
  expect(seen).toEqual(seen.toSorted((one, other) => one - other))
  expect(await LanguageModel.availability()).toBe('available')
})

test('errors of the download and of the server have the names of the specification', async () => {
  const load = () => {
    throw new InoriginError('unavailable', 'The hub is away.', { code: 'hub_unreachable' })
  }
  const { LanguageModel } = open({ load })
  const error = (await rejection(LanguageModel.create())) as DOMException
  expect([error.name, error.message]).toEqual(['NetworkError', 'The hub is away.'])

  const { LanguageModel: Closed } = open({
    server: async () => {
      throw new InoriginError('unavailable', 'There is no host.', { code: 'no_host' })
    },
  })
  expect(await rejection(Closed.availability())).toMatchObject({ name: 'UnknownError' })

  const { LanguageModel: Unknown } = open({ model: '@me/other' })
  expect(await Unknown.availability()).toBe('unavailable')
  expect(await rejection(Unknown.create())).toMatchObject({ name: 'NotSupportedError' })
})

test('a monitor that throws ends create() with its error', async () => {
  const { LanguageModel } = open()
  const error = new Error('broken')
  const monitor = () => {
    throw error
  }
  expect(await rejection(LanguageModel.create({ monitor }))).toBe(error)
})

test('the global of the browser stays, unless it is to be replaced', () => {
  const { server } = open()
  const names = ['LanguageModel', 'CreateMonitor', 'LanguageModelToolCall']
  onTestFinished(() => {
    for (const name of [...names, 'LanguageModelToolSuccess', 'LanguageModelToolError'])
      Reflect.deleteProperty(globalThis, name)
  })
  const own = () => undefined
  Object.defineProperty(globalThis, 'LanguageModel', { value: own, configurable: true })
  const installed = installLanguageModel({ server, model: TAG })
  expect(installed).toBe(own)
  expect('CreateMonitor' in globalThis).toBe(false)
  const forced = installLanguageModel({ server, model: TAG, force: true })
  expect(Reflect.get(globalThis, 'LanguageModel')).toBe(forced)
  expect(names.every((name) => name in globalThis)).toBe(true)
})

test('wrong options are named', () => {
  const { server } = open()
  const wrong = { server, model: TAG, tag: 'a' }
  expect(() => installLanguageModel(wrong)).toThrow('Unknown option "tag"')
  expect(() => installLanguageModel({ server, model: 1 as unknown as string })).toThrow(
    'tag must be',
  )
  expect(() => installLanguageModel({ server: {} as never, model: TAG })).toThrow('server must be')
})
