/** Symbolic links in the folder of a model: no file outside of the folder gets into the app. */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { copyItem } from '../../../src/cli/add/copy-file.ts'
import { openInside, openRoot } from '../../../src/cli/add/model-root.ts'
import {
  addIn,
  catalogIn,
  expectWhole,
  freshFolder,
  GUIDE,
  MIXED,
  passing,
  WEIGHTS,
} from './graphs.ts'

const SECRET = 'KEY=not for the public'

const weightsIn = (location: string) =>
  ({
    ...passing({}),
    weights: [{ name: 'w', type: 'uint8', shape: [4], data: { location } }],
  }) as const

async function expectRefused(folder: string, source: string, says: RegExp): Promise<void> {
  await expect(addIn(folder, source)).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringMatching(says),
  })
  expect(existsSync(join(folder, 'public'))).toBe(false)
}

const guideIn = (folder: string, name = 'm'): string => {
  cpSync(GUIDE, join(folder, name), { recursive: true })
  return join(folder, name)
}

test.each<[string, string, string]>([
  ['a file', 'w.bin', '../.env'],
  ['an absolute path', 'w.bin', '/etc/hostname'],
  ['a hidden file of the folder', 'w.bin', '.env'],
  ['nothing', 'w.bin', '../gone.bin'],
  ['itself', 'w.bin', 'w.bin'],
])('weights that are a link to %s are refused', async (_, name, target) => {
  const folder = freshFolder({ 'm/m.onnx': weightsIn(name), '.env': SECRET, 'm/.env': SECRET })
  symlinkSync(target, join(folder, 'm', name))
  await expectRefused(folder, 'm/m.onnx', /w\.bin is a link to .*(\.env|hostname|gone\.bin|w\.bin)/)
})

test.each<[string, string, string]>([
  ['weights in a folder that is a link', 'm/weights', '../outside'],
  ['a link to a link', 'm/weights/w.bin', '../next.bin'],
])('refuses %s', async (_, link, target) => {
  const folder = freshFolder({ 'm/mixed.onnx': MIXED, 'outside/w.bin': WEIGHTS })
  mkdirSync(dirname(join(folder, link)), { recursive: true })
  symlinkSync(target, join(folder, link))
  symlinkSync('../outside/w.bin', join(folder, 'm/next.bin'))
  await expectRefused(folder, 'm/mixed.onnx', /is a link to .*outside/)
})

test.each(['config.json', 'tokenizer.json', 'tokenizer_config.json', 'onnx/model.onnx', 'onnx'])(
  'a chat model whose %s is a link out of its folder is refused',
  async (name) => {
    const folder = freshFolder()
    const model = guideIn(folder)
    renameSync(join(model, name), join(folder, 'outside'))
    symlinkSync(join(folder, 'outside'), join(model, name))
    await expectRefused(folder, 'm', new RegExp(`m/${name} is a link to .*outside`))
  },
)

test.each(['params_shard_0.bin', 'mlc-chat-config.json', 'model-webgpu.wasm'])(
  'a model compiled by MLC whose %s is a link out of its folder is refused',
  async (name) => {
    const folder = freshFolder({
      'm/mlc-chat-config.json': '{}',
      'm/tensor-cache.json': '{"records": [{"dataPath": "params_shard_0.bin"}]}',
      'm/params_shard_0.bin': 'weights',
      'm/model-webgpu.wasm': 'code',
      'm/tokenizer.json': '{}',
    })
    renameSync(join(folder, 'm', name), join(folder, 'outside'))
    symlinkSync('../outside', join(folder, 'm', name))
    await expectRefused(folder, 'm', new RegExp(`m/${name} is a link to ../outside`))
  },
)

test('a graph that is a link out of its folder is refused, and its target can be added', async () => {
  const folder = freshFolder({ 'm/readme.md': '', 'elsewhere/real.onnx': passing({}) })
  symlinkSync('../elsewhere/real.onnx', join(folder, 'm/m.onnx'))
  await expectRefused(
    folder,
    'm/m.onnx',
    /m\.onnx is a link to \.\.\/elsewhere\/real\.onnx.* Copy the file into the folder/,
  )
  await addIn(folder, 'elsewhere/real.onnx')
  expectWhole(folder)
})

test.each(['.env', 'keys/.private/id', './.env'])(
  'weights in the hidden file %s are refused',
  async (location) => {
    const folder = freshFolder({ 'm.onnx': weightsIn(location), [location]: SECRET })
    await expectRefused(folder, 'm.onnx', /hidden/)
  },
)

test.each(['../.env', '/etc/hostname', 'a/../../.env', 'C:\\.env', '\\\\host\\.env'])(
  'weights at %s are refused',
  async (location) => {
    const folder = freshFolder({ 'm/m.onnx': weightsIn(location), '.env': SECRET })
    await expectRefused(folder, 'm/m.onnx', /outside of its folder/)
  },
)

test.each(['w\0.bin', 'w'.repeat(5000)])(
  'weights of an impossible name are refused',
  async (location) => {
    await expectRefused(
      freshFolder({ 'm.onnx': weightsIn(location) }),
      'm.onnx',
      /which is not beside it/,
    )
  },
)

test('weights that are a folder are refused', async () => {
  const folder = freshFolder({ 'm.onnx': weightsIn('w.bin'), 'w.bin/x': '' })
  await expectRefused(folder, 'm.onnx', /w\.bin is not a file/)
})

test.skipIf(process.platform === 'win32')(
  'weights that are a pipe are refused at once',
  async () => {
    const folder = freshFolder({ 'm.onnx': weightsIn('w.bin') })
    execFileSync('mkfifo', [join(folder, 'w.bin')])
    await expectRefused(folder, 'm.onnx', /w\.bin is not a file/)
    await expect(openInside(openRoot(folder), 'w.bin')).rejects.toThrow('w.bin is not a file')
  },
)

test('links that stay in the folder are followed, and one that leads in a circle is passed by', async () => {
  const folder = freshFolder({ 'm/mixed.onnx': MIXED, 'm/store/w.bin': WEIGHTS })
  symlinkSync('store', join(folder, 'm/weights'))
  symlinkSync('.', join(folder, 'm/again'))
  await addIn(folder, 'm')
  expectWhole(folder)
})

test('the folder that is named may be a link itself', async () => {
  const folder = freshFolder()
  guideIn(folder, 'real')
  symlinkSync('real', join(folder, 'm'))
  await addIn(folder, 'm')
  expectWhole(folder)
})

/** A model as `huggingface_hub` keeps it: every file a link into `blobs/`. */
function cached(): { folder: string; snapshot: string; blobs: string } {
  const folder = freshFolder()
  const repository = join(folder, 'hub/models--me--model')
  const [snapshot, blobs] = [
    join(repository, 'snapshots', 'a'.repeat(40)),
    join(repository, 'blobs'),
  ]
  mkdirSync(join(snapshot, 'onnx'), { recursive: true })
  mkdirSync(blobs)
  for (const [index, name] of [
    'config.json',
    'tokenizer.json',
    'tokenizer_config.json',
    'onnx/model.onnx',
  ].entries()) {
    const blob = `${index}`.repeat(index % 2 === 0 ? 40 : 64)
    cpSync(join(GUIDE, name), join(blobs, blob))
    symlinkSync(
      join(name.includes('/') ? '../../../blobs' : '../../blobs', blob),
      join(snapshot, name),
    )
  }
  return { folder, snapshot, blobs }
}

const HUB = 'hub/models--me--model/snapshots/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'

test('a snapshot in a cache of the hub is added, as a whole or by its graph', async () => {
  const { folder, snapshot } = cached()
  expect(basename(snapshot)).toBe(basename(HUB))
  await addIn(folder, HUB, { tag: '@me/whole' })
  await addIn(folder, `${HUB}/onnx/model.onnx`, { tag: '@me/graph', devices: ['webgpu'] })
  expect(catalogIn(folder).entries.map(({ type }) => type)).toEqual(['model', 'predictor'])
  expectWhole(folder)
})

test.each<[string, (blobs: string) => string]>([
  ['a blob of another repository', (blobs) => blobs.replace('me--model', 'me--other')],
  ['a file beside the blobs', (blobs) => join(blobs, '../refs')],
  ['a file below the blobs', (blobs) => join(blobs, 'more')],
  ['the cache itself', (blobs) => join(blobs, '../..')],
])('a snapshot with a link to %s is refused', async (_, placeOf) => {
  const { folder, snapshot, blobs } = cached()
  const outside = join(placeOf(blobs), 'f'.repeat(40))
  mkdirSync(dirname(outside), { recursive: true })
  writeFileSync(outside, '{}')
  rmSync(join(snapshot, 'config.json'))
  symlinkSync(outside, join(snapshot, 'config.json'))
  await expectRefused(folder, HUB, /config\.json is a link to /)
})

test('a snapshot with a link to a blob that is none is refused', async () => {
  const { folder, snapshot, blobs } = cached()
  writeFileSync(join(blobs, 'secret.json'), '{}')
  rmSync(join(snapshot, 'config.json'))
  symlinkSync('../../blobs/secret.json', join(snapshot, 'config.json'))
  await expectRefused(folder, HUB, /config\.json is a link to /)
})

test('a folder that only looks like a snapshot gets no exception', async () => {
  const folder = freshFolder({
    'model/snapshots/1/readme.md': '',
    [`model/blobs/${'b'.repeat(40)}`]: '{}',
  })
  symlinkSync(`../../blobs/${'b'.repeat(40)}`, join(folder, 'model/snapshots/1/m.onnx'))
  await expectRefused(folder, 'model/snapshots/1', /m\.onnx is a link to /)
})

test('a file that became a link after it was listed is refused', async () => {
  const folder = freshFolder({ 'm/w.bin': 'weights', '.env': SECRET })
  const source = openRoot(join(folder, 'm'))
  const item = { type: 'data', name: 'w.bin', path: 'w.bin', bytes: 7 } as const
  rmSync(join(folder, 'm/w.bin'))
  symlinkSync('../.env', join(folder, 'm/w.bin'))
  const options = {
    maxFileBytes: 100,
    signal: new AbortController().signal,
    onBytes: () => undefined,
  }
  await expect(copyItem(source, item, join(folder, 'out'), options)).rejects.toThrow(
    'w.bin is a link to ../.env',
  )
  expect(existsSync(join(folder, 'out/w.bin'))).toBe(false)
})
