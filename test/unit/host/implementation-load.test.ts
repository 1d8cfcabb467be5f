import { expect, test } from 'vitest'
import { NO_RECORD } from '../../../src/host/choice/load-crashes.ts'
import { startLoad, type LoadOptions } from '../../../src/host/models/implementation-load.ts'
import type { ModelService, ModelSetup } from '../../../src/host/models/model-service.ts'
import type { Remote } from '../../../src/types/index.ts'
import { HASH, model } from '../catalog/entries.ts'

const resource = (type: 'config' | 'onnx', name: string, bytes: number) => ({
  type,
  url: name,
  name,
  bytes,
  sha256: HASH,
})

/** Starts a load whose files are stored. The worker only keeps what it was opened with. */
function start() {
  const [implementation] = model().implementations
  const resources = [
    resource('config', 'config.json', 5),
    resource('onnx', 'onnx/model.onnx', 7_000_000),
  ]
  const setups: ModelSetup[] = []
  const worker = {
    openModel: async (setup: ModelSetup) => void setups.push(setup),
    loadModel: async () => null,
  } as Partial<Remote<ModelService>> as Remote<ModelService>
  const options: LoadOptions = {
    entry: model(),
    implementation: { ...implementation!, resources },
    assets: 'https://app.test/inorigin/',
    ensure: async (wanted) => new Map(wanted.map(({ name }) => [name, new Blob()])),
    verdict: undefined,
    threads: async () => undefined,
    crashes: { begin: async () => NO_RECORD },
    comparisons: {
      find: async () => undefined,
      findEncoder: () => Promise.resolve(undefined),
      mustCompare: () => false,
      record: () => undefined,
    },
    onVerdict: () => undefined,
    onProgress: () => undefined,
  }
  const load = startLoad(options, worker, new AbortController(), async (error) => error)
  return { load, setups }
}

test('a load that is asked for is announced to the engine with the sizes of its weights', async () => {
  const { load, setups } = start()
  await load.finish()
  const expectedWeights = new Map([['onnx/model.onnx', { size: 7_000_000 }]])
  expect(setups).toMatchObject([{ runtime: 'https://app.test/inorigin/ort/', expectedWeights }])
})

test('opening only the tokenizer announces nothing', async () => {
  const { load, setups } = start()
  await load.opened
  expect(setups).toHaveLength(1)
  expect(setups[0]).not.toHaveProperty('expectedWeights')
})
