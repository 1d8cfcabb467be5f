import { expect, onTestFinished, test, vi } from 'vitest'
import { installLanguageModel } from '../../../../src/extras/language-model/index.ts'
import { InoriginError } from '../../../../src/error.ts'
import { createDeferred } from '../../../support/deferred.ts'
import { open, openSession, TAG } from './open.ts'

/** Calls a method as JavaScript can, without its types. */
const call = (target: object, method: string, ...given: unknown[]): Promise<unknown> =>
  (Reflect.get(target, method) as (...args: unknown[]) => Promise<unknown>).apply(target, given)

test('The interface has the shape of Web IDL', async () => {
  const { LanguageModel, session } = await openSession()
  expect(() => new LanguageModel(undefined as never)).toThrow(TypeError)
  expect(session).toBeInstanceOf(LanguageModel)
  expect(session).toBeInstanceOf(EventTarget)
  expect(String(session)).toBe('[object LanguageModel]')
  expect(Object.keys(session)).toEqual([])
  const members =
    'append clone contextUsage contextWindow destroy measureContextUsage oncontextoverflow'
  const prompts = 'prompt promptStreaming samplingMode'
  const names = Object.keys(LanguageModel.prototype).toSorted()
  expect(names.join(' ')).toBe(`${members} ${prompts}`)
  expect(Object.keys(LanguageModel).toSorted()).toEqual(['availability', 'create'])
  expect([LanguageModel.create.length, session.prompt.length]).toEqual([0, 1])
  expect(() => LanguageModel.prototype.contextUsage).toThrow('Illegal invocation')
  await expect(LanguageModel.prototype.prompt('a')).rejects.toBeInstanceOf(TypeError)
})

test('The former names come with legacy', async () => {
  const { LanguageModel, server, session } = await openSession(
    { legacy: true },
    { topK: 3.7, temperature: 9 },
  )
  const topK = { defaultTopK: 40, maxTopK: 128 }
  const temperature = { defaultTemperature: 1, maxTemperature: 2 }
  expect(await LanguageModel.params?.()).toEqual({ ...topK, ...temperature })
  expect(session).toMatchObject({ topK: 3, temperature: 2, samplingMode: null, inputUsage: 0 })
  expect(session.inputQuota).toBe(session.contextWindow)
  expect(await session.measureInputUsage?.('a b')).toBe(2)
  expect(session.onquotaoverflow).toBe(null)
  await session.prompt('a')
  expect(server.requests[0]?.sampling).toMatchObject({ topK: 3, temperature: 2 })
  const { create } = LanguageModel
  await expect(create({ topK: 3 })).rejects.toMatchObject({ name: 'NotSupportedError' })
  await expect(create({ topK: 0, temperature: 1 })).rejects.toBeInstanceOf(RangeError)
  const both = { topK: 1, temperature: 1, samplingMode: 'balanced' } as const
  await expect(create(both)).rejects.toBeInstanceOf(TypeError)
})

const user = { role: 'user', content: 'a' }

test.each([
  ['no argument', []],
  ['a message without content', [[{ role: 'user' }]]],
  ['an unknown role', [[{ role: 'nobody', content: 'a' }]]],
  ['an unknown type', [[{ role: 'user', content: [{ type: 'soup', value: 'a' }] }]]],
  ['a symbol', [Symbol('a')]],
  ['a late message of the system', [[user, { role: 'system', content: 'b' }]]],
  ['a constraint that is no object', ['a', { responseConstraint: 'b' }]],
  ['an omitted constraint that is not there', ['a', { omitResponseConstraintInput: true }]],
  ['a signal that is none', ['a', { signal: {} }]],
  ['options that are no object', ['a', 1]],
])('prompt() with %s rejects with a TypeError', async (_what, given) => {
  const { session } = await openSession()
  await expect(call(session, 'prompt', ...given)).rejects.toBeInstanceOf(TypeError)
})

test.each([
  ['SyntaxError', [{ role: 'assistant', content: 'a', prefix: true }, user]],
  ['SyntaxError', [{ ...user, prefix: true }]],
  ['NotSupportedError', [{ role: 'user', content: [{ type: 'audio', value: new Blob() }] }]],
  ['NotSupportedError', [{ role: 'assistant', content: [{ type: 'image', value: new Blob() }] }]],
])('prompt() rejects with the %s of the specification: %j', async (name, input) => {
  const { session } = await openSession()
  await expect(call(session, 'prompt', input)).rejects.toMatchObject({ name })
})

test('Every input that is no list is a text', async () => {
  const { session } = await openSession()
  for (const input of [null, undefined, {}, 1]) {
    expect(await call(session, 'prompt', input)).toBe(`Heard: ${String(input)}`)
  }
})

test('Unsupported languages, inputs and outputs are unavailable', async () => {
  const { LanguageModel } = open()
  const inputs = (type: 'text' | 'image' | 'audio', languages?: string[]) => ({
    expectedInputs: [{ type, ...(languages && { languages }) }],
  })
  const outputs = (type: 'text' | 'image', languages?: string[]) => ({
    expectedOutputs: [{ type, ...(languages && { languages }) }],
  })
  const { availability } = LanguageModel
  expect(await availability(inputs('text', ['EN', 'ja']))).toBe('downloadable')
  expect(await availability(inputs('text', ['unk']))).toBe('unavailable')
  const invalid = availability(inputs('text', ['en-abc-invalid']))
  await expect(invalid).rejects.toBeInstanceOf(RangeError)
  expect(await availability(inputs('image'))).toBe('downloadable')
  expect(await availability(inputs('audio'))).toBe('unavailable')
  expect(await availability(outputs('image'))).toBe('unavailable')
  const creating = LanguageModel.create(inputs('audio'))
  await expect(creating).rejects.toMatchObject({ name: 'NotSupportedError' })

  const { LanguageModel: English } = open({ languages: ['en'] })
  expect(await English.availability(outputs('text', ['en-GB']))).toBe('downloadable')
  expect(await English.availability(outputs('text', ['fr']))).toBe('unavailable')
})

test('A download is reported from 0 to 1, and needs a click', async () => {
  const download = createDeferred()
  const { LanguageModel } = open({ load: () => download.promise })
  const userActivation = { hasBeenActive: false }
  vi.stubGlobal('navigator', { userActivation })
  await expect(LanguageModel.create()).rejects.toMatchObject({ name: 'NotAllowedError' })
  userActivation.hasBeenActive = true
  const seen: number[] = []
  const creating = LanguageModel.create({
    monitor: (monitor) => {
      monitor.ondownloadprogress = ({ loaded, total }) => seen.push(loaded / total)
    },
  })
  await vi.waitUntil(() => seen.length > 0, { timeout: 60_000 })
  expect(await LanguageModel.availability()).toBe('downloading')
  download.resolve()
  await creating
  expect(seen[0]).toBe(0)
  expect(seen.at(-1)).toBe(1)
  expect(seen).toEqual(seen.toSorted((one, other) => one - other))
  expect(await LanguageModel.availability()).toBe('available')
})

test('Errors of the download and of the server have the names of the specification', async () => {
  const load = () => {
    throw new InoriginError('unavailable', 'The hub is away.', { code: 'hub_unreachable' })
  }
  const { LanguageModel } = open({ load })
  const error = { name: 'NetworkError', message: 'The hub is away.' }
  await expect(LanguageModel.create()).rejects.toMatchObject(error)

  const { LanguageModel: Closed } = open({
    server: async () => {
      throw new InoriginError('unavailable', 'There is no host.', { code: 'no_host' })
    },
  })
  await expect(Closed.availability()).rejects.toMatchObject({ name: 'UnknownError' })

  const { LanguageModel: Unknown } = open({ model: '@me/other' })
  expect(await Unknown.availability()).toBe('unavailable')
  await expect(Unknown.create()).rejects.toMatchObject({ name: 'NotSupportedError' })
})

test('A monitor that throws ends create() with its error', async () => {
  const { LanguageModel } = open()
  const error = new Error('broken')
  const monitor = () => {
    throw error
  }
  await expect(LanguageModel.create({ monitor })).rejects.toBe(error)
})

test('The global of the browser stays unless force is set', () => {
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

test.each<[object, string]>([
  [{ tag: 'a' }, 'Unknown option "tag"'],
  [{ model: 1 }, 'tag must be'],
  [{ server: {} }, 'server must be'],
])('The wrong options %j are refused', (wrong, message) => {
  const { server } = open()
  const options = { server, model: TAG, ...wrong } as Parameters<typeof installLanguageModel>[0]
  expect(() => installLanguageModel(options)).toThrow(message)
})
