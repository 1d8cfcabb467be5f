import { afterEach, describe, expect, test, vi } from 'vitest'
import { createPredictions } from '../../../src/host/library/predictions.ts'
import type { PredictionRecord } from '../../../src/store/db.ts'
import type { PredictionRequest } from '../../../src/types/index.ts'
import { HASH, predictor } from '../catalog/entries.ts'
import { memoryDatabase } from '../../support/memory-database.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

const listed = predictor({
  implementations: [
    {
      id: 'wasm',
      engine: 'onnx',
      device: 'wasm',
      resources: [
        { type: 'onnx', url: 'https://a.test/m.onnx', name: 'm.onnx', bytes: 10, sha256: HASH },
      ],
    },
  ],
})

const record: PredictionRecord = {
  id: 'pred_1',
  tag: listed.tag,
  clientId: 'app',
  configurationId: '',
  deviceId: 'dev',
  configuration: 'conf_1',
  implementation: 'wasm',
  resources: [{ type: 'onnx', name: 'm.onnx', sha256: HASH }],
  entry: { ...listed, implementations: listed.implementations },
  created: '2026-01-02T03:04:05.000Z',
  lastUsed: Date.now(),
}

/** What the catalog lists no more was given before; the server answers that when it is asked for its file. */
function open(status = 404) {
  vi.stubGlobal('fetch', async () => new Response(null, { status }))
  const connection = {
    get: async (store: string, key: string) =>
      store === 'predictions' && key === record.id ? record : undefined,
    getAllFromIndex: async (_store: string, index: string, key: string) =>
      index === 'configuration' && key === record.configuration ? [record] : [],
    put: async () => undefined,
  }
  const database = memoryDatabase(connection)
  return createPredictions({
    database,
    scope: 'https://app.test/',
    entries: { all: async () => [] } as never,
    device: async () => ({}) as never,
    selector: {} as never,
  })
}

const signal = new AbortController().signal

describe('an implementation that is gone is the fault of what asked for it:', () => {
  const create = (more: Partial<PredictionRequest>) =>
    open().create({ tag: listed.tag, clientId: 'app', ...more }, signal)
  const cases: Record<string, () => Promise<unknown>> = {
    predictionId: () => create({ predictionId: record.id }),
    configurationId: () => create({ configurationId: record.configuration }),
    configuration: () => open().resolveConfiguration(listed.tag, record.configuration, signal),
  }
  test.each(Object.entries(cases))('%s', async (param, ask) => {
    await expect(ask()).rejects.toMatchObject({
      kind: 'not_found',
      code: 'implementation_gone',
      param,
      message: expect.stringMatching(new RegExp(`without ${param}\\b`)),
    })
  })
})

test('whoever has given up is given nothing that would be remembered', async () => {
  const asked = open(200).create(
    { tag: listed.tag, clientId: 'other', predictionId: record.id },
    AbortSignal.abort(),
  )
  await expect(asked).rejects.toMatchObject({ name: 'AbortError' })
})
