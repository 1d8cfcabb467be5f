/**
 * A model named by its repository on a hub: found, pinned, downloaded, and there without the hub.
 *
 * @module-tag slow
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import type { Page } from 'playwright'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import type { LoadProgress, Server } from '../../src/index.ts'
import { ENCODER } from '../support/encoder.ts'
import { onnxFile } from '../support/onnx.ts'
import { askModel, openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { fetchIn } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const GUIDE = join(import.meta.dirname, '../../demo/models/guide')
const COMMITS = ['a', 'b'].map((digit) => digit.repeat(40)) as [string, string]
const TAG = '@me/guide'

let site: Site
let hub: Hub

afterEach(async () => {
  await site?.close()
  await hub?.close()
})

interface InPage {
  server: Server
}

const serveFromHub = (page: Page, revision?: string) =>
  serveIn(page, {
    device: 'wasm',
    catalog: {
      version: 1,
      entries: [{ tag: TAG, huggingface: 'me/guide', host: hub.url, revision }],
    },
  })

const stateOf = (page: Page) =>
  page.evaluate(async (tag) => {
    const { server } = globalThis as unknown as InPage
    return (await server.models.list()).find((state) => state.tag === tag)
  }, TAG)

test('two fields are enough; the commit of the first load stays, and needs no hub any more', async () => {
  hub = await openHub({ 'me/guide': repositoryOf(GUIDE, COMMITS[0]) })
  site = await openSite()
  const page = await site.open()
  await serveFromHub(page)
  expect(await stateOf(page)).toMatchObject({ status: 'remote', bytes: null, device: null })

  const phases = await page.evaluate(async (tag) => {
    const { server } = globalThis as unknown as InPage
    const seen: LoadProgress[] = []
    await server.models.load(tag, { onProgress: (progress) => seen.push(progress) })
    return [...new Set(seen.map(({ phase }) => phase))]
  }, TAG)
  expect(phases).toEqual(['download', 'compile', 'warm', 'ready'])
  expect(await askModel(page, TAG)).toEqual(await askModel(page, '@inorigin/guide'))
  expect(await stateOf(page)).toMatchObject({ status: 'loaded', device: 'wasm' })
  expect(hub.asked.filter((path) => path.includes('/resolve/'))).toEqual(
    hub.asked.filter((path) => path.includes(`/resolve/${COMMITS[0]}/`)),
  )

  // Its files are told as those of any other tag are.
  const prediction = await fetchIn(page, '/v1/predictions', { tag: TAG, clientId: 'test' })
  const { resources } = JSON.parse(prediction.text)
  const types = resources.map((resource: { type: string }) => resource.type)
  expect(types).toEqual(expect.arrayContaining(['onnx', 'tokenizer', 'config']))
  expect((await fetchIn(page, resources[0].url)).status).toBe(200)

  // The branch moves on, then the hub goes away: neither is noticed.
  hub.repositories = { 'me/guide': { files: {}, commit: COMMITS[1] } }
  hub.asked.length = 0
  await page.reload()
  await serveFromHub(page)
  expect(await stateOf(page)).toMatchObject({ status: 'stored', device: 'wasm' })
  expect((await askModel(page, TAG))[0]).toBe(200)
  expect(hub.asked).toEqual([])

  // Until the catalog names another commit.
  hub.repositories = { 'me/guide': repositoryOf(GUIDE, COMMITS[1]) }
  await page.reload()
  await serveFromHub(page, COMMITS[1])
  expect((await askModel(page, TAG))[0]).toBe(200)
  expect(hub.asked).toContain(`/api/models/me/guide/revision/${COMMITS[1]}`)
})

test('a hub that cannot be reached is a 503 that says so, and the next request tries again', async () => {
  hub = await openHub({ 'me/guide': repositoryOf(GUIDE, COMMITS[0]) })
  site = await openSite()
  const page = await site.open()
  await serveFromHub(page)
  hub.refuseWith = 500
  expect(await askModel(page, TAG)).toEqual([503, expect.stringMatching(/^hub_unreachable: /)])
  hub.refuseWith = 0
  expect((await askModel(page, TAG))[0]).toBe(200)
})

test('an encoder is found to be one by its files, and embeds texts also without the hub', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-hub-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const config = { architectures: ['BertModel'], max_position_embeddings: 16 }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  copyFileSync(join(GUIDE, 'tokenizer.json'), join(folder, 'tokenizer.json'))
  mkdirSync(join(folder, 'onnx'))
  writeFileSync(join(folder, 'onnx/model.onnx'), onnxFile(ENCODER))
  hub = await openHub({ 'me/guide': repositoryOf(folder, COMMITS[0]) })
  site = await openSite()
  const page = await site.open()
  await serveFromHub(page)
  const embed = async () =>
    JSON.parse((await fetchIn(page, '/v1/embeddings', { model: TAG, input: ['Lists.'] })).text)
  const { data, error } = await embed()
  expect(error).toBeUndefined()
  const own = new Tokenizer(JSON.parse(readFileSync(join(GUIDE, 'tokenizer.json'), 'utf8')), {})
  const { ids } = own.encode('Lists.')
  const mean = ids.reduce((sum, id) => sum + id, 0) / ids.length
  expect(data[0].embedding).toEqual(
    [mean, 100].map((one) => expect.closeTo(one / Math.hypot(mean, 100), 4)),
  )
  expect((await fetchIn(page, `/v1/models/${TAG}`)).text).toContain('"embeddings"')
  expect(await askModel(page, TAG)).toEqual([400, expect.stringMatching(/^unsupported_model: /)])

  hub.refuseWith = 500
  await page.reload()
  await serveFromHub(page)
  expect((await embed()).data).toEqual(data)
})
