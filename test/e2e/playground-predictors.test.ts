/**
 * Forms of any predictor in the playground: each kind of input and output, and the requests.
 *
 * @module-tag slow
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Browser, Locator, Page } from 'playwright'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Binding, PredictorEntry } from '../../src/index.ts'
import { findAccessibilityProblems } from '../support/axe.ts'
import { openBrowser } from '../support/browser.ts'
import { onnxFile } from '../support/onnx.ts'
import {
  cameraState,
  fakeCamera,
  give,
  openPlayground,
  openTab,
  overflowOf,
  sharePlayground,
  type Playground,
  type PlaygroundOptions,
} from '../support/playground.ts'
import { openSite, type Site } from '../support/site.ts'
import { MIXED, predictorEntry, VALUES, valuesCatalog } from '../support/values.ts'

const PICTURE = join(import.meta.dirname, '../models/vision/wide.png')

/** Files of predictors that return what they get, by name. */
const FILES = {
  sound: echoFile('float32', [1, 'samples']),
  bytes: echoFile('uint8', ['length']),
  found: foundFile(),
}

function echoFile(type: 'float32' | 'uint8', shape: (number | string)[]): Uint8Array {
  return onnxFile({
    inputs: [{ name: 'given', type, shape }],
    outputs: [{ name: 'same', type, shape }],
    nodes: [{ type: 'Identity', inputs: ['given'], outputs: ['same'] }],
  })
}

/** Returns a graph that finds a cat in the left half of each picture and a dog in the right one. */
function foundFile(): Uint8Array {
  const pixels = { type: 'float32', shape: [1, 3, 1, 2] } as const
  const numbers = (name: string, shape: number[], values: number[]) => {
    const data = new Uint8Array(Float32Array.from(values).buffer)
    return { name, type: 'float32', shape, data } as const
  }
  return onnxFile({
    inputs: [{ name: 'x', ...pixels }],
    outputs: [
      { name: 'y', ...pixels },
      { name: 'classes', type: 'float32', shape: [1, 2, 2] },
      { name: 'places', type: 'float32', shape: [1, 2, 4] },
    ],
    nodes: [{ type: 'Identity', inputs: ['x'], outputs: ['y'] }],
    weights: [
      numbers('classes', [1, 2, 2], [0.95, 0.05, 0.1, 0.9]),
      numbers('places', [1, 2, 4], [0.25, 0.5, 0.5, 1, 0.75, 0.5, 0.5, 1]),
    ],
  })
}

function echoEntry(
  name: keyof typeof FILES,
  type: 'float32' | 'binary',
  bindings?: Record<string, Binding>,
): PredictorEntry {
  const signature = { inputs: [{ name: 'given', type }], outputs: [{ name: 'same', type }] }
  const options = { signature, bindings }
  return predictorEntry(`@test/${name}`, `/echo/${name}.onnx`, FILES[name], options)
}

const SOUND = echoEntry('sound', 'float32', {
  given: { tensor: 'given', audio: { rate: 8000, window: 4000 } },
})
const BYTES = echoEntry('bytes', 'binary')
const FOUND = predictorEntry('@test/found', '/echo/found.onnx', FILES.found, {
  signature: {
    inputs: [{ name: 'x', type: 'image' }],
    outputs: [
      { name: 'objects', type: 'list' },
      { name: 'parts', type: 'list' },
    ],
  },
  bindings: {
    x: { tensor: 'x', image: { width: 2, height: 1, channels: 'rgb', order: 'nchw' } },
    objects: {
      tensor: 'classes',
      steps: [{ step: 'objects', boxes: 'places', labels: { names: ['cat', 'dog'] } }],
    },
    parts: {
      tensor: 'y',
      steps: [{ step: 'segments', labels: { names: ['red', 'green', 'blue'] } }],
    },
  },
})

const folder = mkdtempSync(join(tmpdir(), 'echo-'))
let browser: Browser
let site: Site
let playground: Playground | undefined

beforeAll(async () => {
  for (const [name, file] of Object.entries(FILES))
    writeFileSync(join(folder, `${name}.onnx`), file)
  const pages = { '/catalog.json': JSON.stringify(valuesCatalog(MIXED, SOUND, BYTES, FOUND)) }
  site = await openSite({ folders: { ...VALUES, '/echo/': folder }, pages })
  browser = await openBrowser()
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  rmSync(folder, { recursive: true })
})

afterEach(async () => {
  await playground?.close()
  playground = undefined
})

/** Opens the form of a predictor of the default catalog, or of the catalog of this test. */
async function openForm(tag: string, options?: PlaygroundOptions): Promise<Page> {
  const isOwn = !tag.startsWith('@inorigin/')
  const url = isOwn ? `${site.url}/?catalog=/catalog.json` : inject('demo')
  playground = await openPlayground(browser, url, options)
  const { page } = playground
  if (isOwn) await page.getByRole('button', { name: 'Load this catalog' }).click()
  // The first visit is reloaded.
  await page.waitForFunction(() => crossOriginIsolated && 'inorigin' in window)
  await openTab(page, 'Predictors')
  const select = page.getByLabel('Predictor', { exact: true })
  await select.locator(`option[value="${tag}"]`).waitFor({ state: 'attached' })
  await select.selectOption(tag)
  await page.getByRole('form', { name: `Inputs of ${tag}` }).waitFor()
  return page
}

const outputsOf = (page: Page): Locator => page.getByRole('region', { name: 'Outputs' })

async function predict(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Predict', exact: true }).click()
  await page
    .getByText(/^\d.* on WASM$/)
    .first()
    .waitFor()
}

/** Runs the code that is shown for one form of the request, and returns what it logs first. */
async function runCode(page: Page, name: string): Promise<unknown> {
  await page.getByText(`As ${name}`, { exact: true }).click()
  const code = await page.getByLabel(`Request with ${name}`, { exact: true }).innerText()
  expect(code).toContain(name === 'fetch' ? '/v1/predictions/remote' : 'inorigin.predict(')
  return page.evaluate(`(async () => {
    let logged
    const console = { log: (value) => { logged = value } }
    ${code}
    const toPlain = (key, value) =>
      value instanceof ImageData ? value.width + ' × ' + value.height
        : typeof value === 'bigint' ? String(value)
          : ArrayBuffer.isView(value) ? [...value].slice(0, 3).map(String) : value
    return JSON.parse(JSON.stringify(logged, toPlain))
  })()`)
}

test('edges: an image, a slider, a list of names, a flag, a dict and a list', async () => {
  const page = await openForm('@inorigin/edges')
  await page.getByRole('button', { name: 'Predict', exact: true }).click()
  await page.getByText('This input is required.').waitFor()
  await page.locator('#predictor-image-value').setInputFiles(PICTURE)
  await page.getByRole('img', { name: 'Image for image' }).waitFor()
  await page.getByLabel('strength, slider').fill('2.4')
  expect(await page.getByLabel('strength', { exact: true }).inputValue()).toBe('2.4')
  await page.getByLabel('strength', { exact: true }).fill('17')
  await page.getByText('17 is too large. The maximum is 16.').waitFor()
  await page.getByLabel('strength', { exact: true }).fill('4')
  await page.getByLabel('mode', { exact: true }).selectOption('outline')
  await page.getByLabel('invert').check()
  await page.getByLabel('weights').fill('{"red": 1, "green": 0, "blue": 9}')
  await page.getByText('"blue": ').waitFor()
  await page.getByLabel('weights').fill('{"red": 1, "green": 0, "blue": 0}')
  await page.getByLabel('kernel').fill('[1,')
  await page.getByText('This is not JSON.').waitFor()
  await page.getByLabel('kernel').fill('')
  await predict(page)
  await outputsOf(page)
    .getByRole('img', { name: /^edges, \d+ × \d+$/ })
    .waitFor()
  expect(await findAccessibilityProblems(page, '#any-predictor')).toEqual([])

  const code = page.getByLabel('Request with server.predict', { exact: true })
  expect(await code.textContent()).toContain('mode: "outline"')
  const outputs = await runCode(page, 'server.predict')
  expect(outputs).toEqual({ edges: expect.stringMatching(/^\d+ × \d+$/) })
  const results = (await runCode(page, 'fetch')) as { data: string; dtype: string }[]
  expect(results).toMatchObject([
    { dtype: 'image', data: expect.stringMatching(/^data:image\/png/) },
  ])
  expect(playground?.faults).toEqual([])
})

test('digits: a camera frame, and scores as bars with the names of the digits', async () => {
  const page = await openForm('@inorigin/digits', { before: fakeCamera })
  const form = page.getByRole('form', { name: 'Inputs of @inorigin/digits' })
  await form.getByRole('button', { name: 'Use the camera' }).click()
  await form.getByRole('button', { name: 'Take this frame' }).click()
  await page.getByRole('img', { name: 'Image for image' }).waitFor()
  await page.getByRole('button', { name: 'Turn the camera off' }).click()
  expect(await cameraState(page)).toBe('ended')
  await predict(page)
  const bars = outputsOf(page).getByRole('list', { name: 'scores' })
  expect(await bars.getByRole('listitem').count()).toBe(10)
  expect(await bars.locator('.best').innerText()).toMatch(/^one\s+\d+ %$/)
  expect(await outputsOf(page).getByText('one', { exact: true }).count()).toBe(2)
})

test('embed: texts, one on each line, and a table of numbers', async () => {
  const page = await openForm('@inorigin/embed', { colorScheme: 'dark' })
  await page.getByLabel('text', { exact: true }).fill('one cat\ntwo dogs')
  await page.getByLabel('Each line is a text of a list').check()
  await predict(page)
  const table = outputsOf(page).getByRole('table', { name: 'vector' })
  expect(await table.innerText()).toContain('2 × 128, the first are shown')
  expect(await table.getByRole('row').count()).toBe(2)
  expect(await findAccessibilityProblems(page, '#any-predictor')).toEqual([])
})

test('numbers, tensors, 64 bits and texts are checked as they are typed', async () => {
  const page = await openForm('@values/mixed', { viewport: { width: 390, height: 844 } })
  const matrix = page.getByLabel('matrix', { exact: true })
  await matrix.fill('[[1, "two", 3]]')
  await page.getByText('"two" is not a number.').waitFor()
  await matrix.fill('[[1, 2, 3], [4, 5, 6]]')
  const count = page.getByLabel('count', { exact: true })
  await count.fill('1.5')
  await page.getByText('1.5 is not a whole number.').waitFor()
  await count.fill('9223372036854775808')
  await page.getByText('does not fit into int64').waitFor()
  await count.fill('9007199254740993')
  await page.getByLabel('texts', { exact: true }).fill('word')
  await page.getByLabel('Each line is a text of a list').check()
  await predict(page)
  const shown = outputsOf(page)
  expect(await shown.getByRole('table', { name: 'scaled' }).innerText()).toContain('2 × 3')
  expect(await shown.getByText('21', { exact: true }).isVisible()).toBe(true)
  expect(await shown.getByText('9007199254740994').isVisible()).toBe(true)
  expect(await overflowOf(page)).toBe(0)
  expect(await runCode(page, 'server.predict')).toMatchObject({ next: '9007199254740994' })
  // JSON has no integers of 64 bits.
  await count.fill('41')
  await predict(page)
  await shown.getByText('42', { exact: true }).waitFor()
  const results = (await runCode(page, 'fetch')) as { dtype: string }[]
  const types = ['float32', 'float32', 'float16', 'float64', 'int64', 'bool', 'string']
  expect(results.map(({ dtype }) => dtype)).toEqual(types)
})

const SOUND_FILE = join(import.meta.dirname, '../../demo/pipelines/example.wav')

test('an image is dropped and pasted', async () => {
  const page = await openForm('@inorigin/edges')
  const hint = page.getByText('Choose a file, or drop or paste an image here.')
  const picture = page.getByRole('img', { name: 'Image for image' })
  for (const how of ['drop', 'paste'] as const) {
    expect(await give(hint, how, PICTURE, 'image/png')).toBe(true)
    await picture.waitFor()
    expect(await picture.evaluate((canvas) => (canvas as HTMLCanvasElement).width)).toBe(
      readFileSync(PICTURE).readUInt32BE(16),
    )
    await predict(page)
    await picture.evaluate((canvas) => {
      Object.assign(canvas, { width: 1, hidden: true })
    })
  }
  expect(await give(hint, 'drop', SOUND_FILE, 'audio/wav')).toBe(true)
  await page.getByText('This browser cannot read drop.file as an image.').waitFor()
})

test('what is found in a picture is drawn on it, with a list of colors', async () => {
  const page = await openForm('@test/found')
  await page.getByText('Choose a file, or drop or paste an image here.').waitFor()
  await page.locator('.predictor-form input[type=file]').setInputFiles(PICTURE)
  await page.getByRole('img', { name: 'Image for x' }).waitFor()
  await predict(page)
  const outputs = outputsOf(page)
  const objects = outputs.getByRole('list', { name: 'objects' })
  expect(await objects.getByRole('listitem').allInnerTexts()).toEqual([
    expect.stringMatching(/^cat\s*95 %$/),
    expect.stringMatching(/^dog\s*90 %$/),
  ])
  // The line of the dog's box is in the middle of the picture, below its name, and has the color of the list.
  const line = await outputs
    .getByRole('img', { name: 'objects: cat, dog' })
    .evaluate((canvas: HTMLCanvasElement) => {
      const { width, height } = canvas
      const [red, green, blue] =
        canvas.getContext('2d')?.getImageData(width / 2, height - 10, 1, 1).data ?? []
      return `rgb(${red}, ${green}, ${blue})`
    })
  const swatch = objects.locator('i').last()
  expect(await swatch.evaluate((one) => getComputedStyle(one).backgroundColor)).toBe(line)

  const parts = outputs.getByRole('list', { name: 'parts' })
  const [part] = await parts.getByRole('listitem').allInnerTexts()
  expect(part).toMatch(/^(red|green|blue)$/)
  // Its color lies over the picture.
  const [plain, marked] = await Promise.all(
    [
      page.getByRole('img', { name: 'Image for x' }),
      outputs.getByRole('img', { name: /^parts: / }),
    ].map((image) => image.evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL())),
  )
  expect(marked).not.toBe(plain)
  expect(await findAccessibilityProblems(page)).toEqual([])
})

test('sound is dropped, pasted and recorded in place of numbers, and played', async () => {
  const page = await openForm('@test/sound', { before: fakeMicrophone })
  const numbers = page.getByLabel('given', { exact: true })
  expect(await page.getByText('Sound for given').isVisible()).toBe(true)
  for (const how of ['drop', 'paste'] as const) {
    expect(await give(numbers, how, SOUND_FILE, 'audio/wav')).toBe(true)
    await page.getByText(`${how}.wav, 102 kB, is used.`).waitFor()
    await predict(page)
    await outputsOf(page).getByRole('button', { name: 'Play as sound' }).waitFor()
    await page.getByRole('button', { name: 'Use the numbers' }).click()
    expect(await page.getByText('is used.').count()).toBe(0)
  }
  // A text is still pasted into the numbers.
  const isTaken = await numbers.evaluate((control) => {
    const clipboardData = new DataTransfer()
    clipboardData.setData('text/plain', '[1, 2]')
    return !control.dispatchEvent(
      new ClipboardEvent('paste', { clipboardData, cancelable: true, bubbles: true }),
    )
  })
  expect(isTaken).toBe(false)

  await page.getByLabel('Sound file').setInputFiles(PICTURE)
  await page.getByText('This browser cannot read wide.png as sound.').waitFor()
  await page.getByRole('button', { name: 'Record the microphone' }).click()
  await page.getByText(/^Recording, [1-9]/).waitFor()
  await page.getByRole('button', { name: 'End the recording' }).click()
  await page.getByText(/^recording\.wav, \d.* is used\.$/).waitFor()
  await predict(page)
  await outputsOf(page).getByRole('button', { name: 'Play as sound' }).waitFor()
  expect(await findAccessibilityProblems(page, '#any-predictor')).toEqual([])
  const results = (await runCode(page, 'fetch')) as { dtype: string }[]
  expect(results.map(({ dtype }) => dtype)).toEqual(['float32'])
})

test('bytes of a file, in and out', async () => {
  const page = await openForm('@test/bytes')
  await page.getByLabel('given', { exact: true }).setInputFiles(PICTURE)
  await predict(page)
  const { length } = readFileSync(PICTURE)
  await outputsOf(page)
    .getByText(`${(length / 1_000).toFixed(1)} kB`)
    .waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    outputsOf(page).getByRole('button', { name: 'Save' }).click(),
  ])
  expect(await buffer(await download.createReadStream())).toEqual(readFileSync(PICTURE))
  const [result] = (await runCode(page, 'fetch')) as { dtype: string; data: string }[]
  expect(result?.dtype).toBe('binary')
  expect(result?.data).toContain(readFileSync(PICTURE).toString('base64'))
})

/** A microphone that hears a tone. */
function fakeMicrophone(): void {
  navigator.mediaDevices.getUserMedia = async () => {
    const context = new AudioContext()
    const tone = new OscillatorNode(context)
    const target = context.createMediaStreamDestination()
    tone.connect(new GainNode(context, { gain: 0.4 })).connect(target)
    tone.start()
    return target.stream
  }
}

describe('the examples', () => {
  const shared = sharePlayground()

  test('find the edges of a picture as their parameters say, and of one that is chosen', async () => {
    const { page, faults } = shared()
    await openTab(page, 'Predictors')
    /** Mean brightness of what came out. */
    const light = () =>
      page.locator('#edges-out').evaluate((canvas: HTMLCanvasElement) => {
        const context = canvas.getContext('2d')!
        const { data } = context.getImageData(0, 0, canvas.width, canvas.height)
        return data.reduce((sum, byte, at) => (at % 4 === 3 ? sum : sum + byte), 0) / data.length
      })
    const changed = async (before: number) => {
      await expect.poll(light).not.toBe(before)
      return light()
    }
    expect(await light()).toBe(0)
    await page.getByRole('button', { name: 'Find edges' }).click()
    const plain = await changed(0)
    expect(await page.locator('#edges-said').innerText()).toMatch(/^320 × 240 · .* on WASM$/)
    await page.getByLabel('Strength').fill('8')
    expect(await changed(plain)).toBeGreaterThan(1.5 * plain)
    await page.locator('#edges-mode').selectOption('outline')
    // On the picture itself.
    await expect.poll(light).toBeGreaterThan(3 * plain)
    const choose = page.getByLabel('Another picture')
    await choose.setInputFiles(PICTURE)
    await page.getByText(/^50 × 21 · /).waitFor()
    const text = { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('no') }
    await choose.setInputFiles(text)
    await page.getByText('This browser cannot read a.txt as an image.').waitFor()
    expect(faults).toEqual([])
  })

  test('rank sentences by their embeddings, and show them as text', async () => {
    const { page, faults } = shared()
    await openTab(page, 'Predictors')
    const attack = '<img src=x onerror="stolen=1"> is about tractors'
    const login = 'I forgot my login credentials'
    await page.getByLabel('Others').fill(`The soup needs more salt\n\n${attack}\n${login}`)
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByText(/^4 vectors of 128 numbers · \d+ tokens · /).waitFor()
    const rows = page.getByRole('list', { name: 'Similarity' }).getByRole('listitem')
    expect(await rows.count()).toBe(3)
    expect(await rows.first().innerText()).toMatch(/^I forgot my login credentials\s+\d+ %$/)
    expect(await rows.locator('img').count()).toBe(0)
    expect(await rows.getByText(attack).isVisible()).toBe(true)
    await page.getByLabel('A sentence').fill('word '.repeat(9000))
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByText(/^input\[0\] is too long: /).waitFor()
    expect(faults.filter((fault) => !fault.includes('400'))).toEqual([])
  })
})
