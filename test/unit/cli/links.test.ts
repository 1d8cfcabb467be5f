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
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { copyItem } from '../../../src/cli/add.ts'
import { openInside, openRoot } from '../../../src/cli/add/model-root.ts'
import type { Graph } from '../../support/onnx.ts'
import {
  addIn,
  catalogIn,
  expectWhole,
  freshFolder,
  GUIDE,
  MIXED,
  passing,
  weight,
  WEIGHTS,
} from './graphs.ts'

const SECRET = 'KEY=not for the public'

const weightsIn = (location: string): Graph => ({
  ...passing({}),
  weights: [weight('w', [4], { location })],
})

async function expectRefused(folder: string, source: string, says: RegExp): Promise<void> {
  await expect(addIn(folder, source)).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringMatching(says),
  })
  expect(existsSync(join(folder, 'public'))).toBe(false)
}

/** Files that make a folder a chat model. */
const CHAT = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'onnx/model.onnx']

/** Copies a chat model into the folder. */
const copyGuide = (folder: string, name: string): void => {
  for (const file of CHAT) cpSync(join(GUIDE, file), join(folder, name, file))
}

/** Moves a file or folder out of the folder `m`, and links to it. */
function moveOut(folder: string, name: string): void {
  renameSync(join(folder, 'm', name), join(folder, 'outside'))
  symlinkSync(join(folder, 'outside'), join(folder, 'm', name))
}

test.each<[string, string]>([
  ['a file', '../.env'],
  ['an absolute path', '/etc/hostname'],
  ['a hidden file of the folder', '.env'],
  ['nothing', '../gone.bin'],
  ['itself', 'w.bin'],
])('Weights that are a link to %s are refused', async (_, target) => {
  const folder = freshFolder({ 'm/m.onnx': weightsIn('w.bin'), '.env': SECRET, 'm/.env': SECRET })
  symlinkSync(target, join(folder, 'm/w.bin'))
  await expectRefused(folder, 'm/m.onnx', /w\.bin is a link to .*(\.env|hostname|gone\.bin|w\.bin)/)
})

test.each<[string, string, string]>([
  ['weights in a folder that is a link', 'm/weights', '../outside'],
  ['a link to a link', 'm/weights/w.bin', '../next.bin'],
])('It refuses %s', async (_, link, target) => {
  const folder = freshFolder({ 'm/mixed.onnx': MIXED, 'outside/w.bin': WEIGHTS })
  mkdirSync(dirname(join(folder, link)), { recursive: true })
  symlinkSync(target, join(folder, link))
  symlinkSync('../outside/w.bin', join(folder, 'm/next.bin'))
  await expectRefused(folder, 'm/mixed.onnx', /is a link to .*outside/)
})

test.each([...CHAT, 'onnx'])(
  'A chat model whose %s is a link out of it is refused',
  async (name) => {
    const folder = freshFolder()
    copyGuide(folder, 'm')
    moveOut(folder, name)
    await expectRefused(folder, 'm', new RegExp(`m/${name} is a link to .*outside`))
  },
)

test.each(['params_shard_0.bin', 'mlc-chat-config.json', 'model-webgpu.wasm'])(
  'A model compiled by MLC whose %s is a link out of it is refused',
  async (name) => {
    const folder = freshFolder({
      'm/mlc-chat-config.json': '{}',
      'm/tensor-cache.json': '{"records": [{"dataPath": "params_shard_0.bin"}]}',
      'm/params_shard_0.bin': 'weights',
      'm/model-webgpu.wasm': 'code',
      'm/tokenizer.json': '{}',
    })
    moveOut(folder, name)
    await expectRefused(folder, 'm', new RegExp(`m/${name} is a link to .*outside`))
  },
)

test('A graph that is a link out of its folder is refused, and its target can be added', async () => {
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

test.each<[string, string, RegExp]>([
  ...['.env', 'keys/.private/id', './.env'].map((location): [string, string, RegExp] => [
    'm.onnx',
    location,
    /hidden/,
  ]),
  ...['../.env', '/etc/hostname', 'a/../../.env', 'C:\\.env', '\\\\host\\.env'].map(
    (location): [string, string, RegExp] => ['m/m.onnx', location, /outside of its folder/],
  ),
  ['m.onnx', 'w\0.bin', /which is not beside it/],
  ['m.onnx', 'w'.repeat(5000), /which is not beside it/],
])('%s with weights at %j is refused', async (source, location, why) => {
  const hidden = { '.env': SECRET, 'keys/.private/id': SECRET }
  await expectRefused(freshFolder({ [source]: weightsIn(location), ...hidden }), source, why)
})

test('Weights that are a folder are refused', async () => {
  const folder = freshFolder({ 'm.onnx': weightsIn('w.bin'), 'w.bin/x': '' })
  await expectRefused(folder, 'm.onnx', /w\.bin is not a file/)
})

test.skipIf(process.platform === 'win32')(
  'Weights that are a pipe are refused at once',
  async () => {
    const folder = freshFolder({ 'm.onnx': weightsIn('w.bin') })
    execFileSync('mkfifo', [join(folder, 'w.bin')])
    await expectRefused(folder, 'm.onnx', /w\.bin is not a file/)
    await expect(openInside(openRoot(folder), 'w.bin')).rejects.toThrow('w.bin is not a file')
  },
)

test('Links that stay in the folder are followed, and one that leads in a circle is ignored', async () => {
  const folder = freshFolder({ 'm/mixed.onnx': MIXED, 'm/store/w.bin': WEIGHTS })
  symlinkSync('store', join(folder, 'm/weights'))
  symlinkSync('.', join(folder, 'm/again'))
  await addIn(folder, 'm')
  expectWhole(folder)
})

test('The folder itself may be a link', async () => {
  const folder = freshFolder()
  copyGuide(folder, 'real')
  symlinkSync('real', join(folder, 'm'))
  await addIn(folder, 'm')
  expectWhole(folder)
})

const REPOSITORY = 'hub/models--me--model'
const SNAPSHOT = `${REPOSITORY}/snapshots/${'a'.repeat(40)}`
const BLOBS = `${REPOSITORY}/blobs`

/** Creates a folder with a model as `huggingface_hub` keeps it: every file is a link into `blobs/`. */
function cached(): string {
  const folder = freshFolder()
  mkdirSync(join(folder, SNAPSHOT, 'onnx'), { recursive: true })
  for (const [index, name] of CHAT.entries()) {
    const blob = `${index}`.repeat(index % 2 === 0 ? 40 : 64)
    cpSync(join(GUIDE, name), join(folder, BLOBS, blob))
    const blobs = name.includes('/') ? '../../../blobs' : '../../blobs'
    symlinkSync(join(blobs, blob), join(folder, SNAPSHOT, name))
  }
  return folder
}

test('A snapshot in a cache of the hub is added, as a whole or by its graph', async () => {
  const folder = cached()
  await addIn(folder, SNAPSHOT, { tag: '@me/whole' })
  await addIn(folder, `${SNAPSHOT}/onnx/model.onnx`, { tag: '@me/graph', devices: ['webgpu'] })
  expect(catalogIn(folder).entries.map(({ type }) => type)).toEqual(['model', 'predictor'])
  expectWhole(folder)
})

test.each([
  ['a blob of another repository', `${BLOBS.replace('me--model', 'me--other')}/${'f'.repeat(40)}`],
  ['a file beside the blobs', `${REPOSITORY}/refs/${'f'.repeat(40)}`],
  ['a file below the blobs', `${BLOBS}/more/${'f'.repeat(40)}`],
  ['the cache itself', `hub/${'f'.repeat(40)}`],
  ['a blob without a hash as its name', `${BLOBS}/secret.json`],
])('A snapshot with a link to %s is refused', async (_, target) => {
  const folder = cached()
  const path = join(folder, target)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, '{}')
  rmSync(join(folder, SNAPSHOT, 'config.json'))
  symlinkSync(path, join(folder, SNAPSHOT, 'config.json'))
  await expectRefused(folder, SNAPSHOT, /config\.json is a link to /)
})

test('A folder that only looks like a snapshot is no exception', async () => {
  const blob = `blobs/${'b'.repeat(40)}`
  const folder = freshFolder({ 'model/snapshots/1/readme.md': '', [`model/${blob}`]: '{}' })
  symlinkSync(`../../${blob}`, join(folder, 'model/snapshots/1/m.onnx'))
  await expectRefused(folder, 'model/snapshots/1', /m\.onnx is a link to /)
})

test('A file that became a link after it was listed is refused', async () => {
  const folder = freshFolder({ 'm/w.bin': 'weights', '.env': SECRET })
  const source = openRoot(join(folder, 'm'))
  const item = { type: 'data', name: 'w.bin', path: 'w.bin', bytes: 7 } as const
  rmSync(join(folder, 'm/w.bin'))
  symlinkSync('../.env', join(folder, 'm/w.bin'))
  const { signal } = new AbortController()
  const options = { maxFileBytes: 100, signal, onBytes: () => undefined }
  const copying = copyItem(source, item, join(folder, 'out'), options)
  await expect(copying).rejects.toThrow('w.bin is a link to ../.env')
  expect(existsSync(join(folder, 'out/w.bin'))).toBe(false)
})
