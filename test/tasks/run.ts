/**
 * `npm run test:tasks -- --dir DIR`: adds each folder of `tools/exporters/tasks.py` with `inorigin add`
 * and no option, asks its model in Chromium, and compares the answers with those of Python in
 * `reference.json`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright'
import { buildDemo } from '../setup/demo.ts'
import { runCommand } from '../support/command.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { CliApp } from '../support/cli-app.ts'
import { fetchIn } from '../support/requests.ts'
import { serveStatic } from '../support/static.ts'
import { type Case, compareCase, type Comparison, type Reference } from './compare.ts'

const USAGE = 'npm run test:tasks -- --dir DIR [--only NAME] [--device wasm|webgpu] [--built]'

/** A folder with its reference, and the tag that it gets. */
interface Model {
  folder: string
  tag: string
  reference: Reference
}

type Arguments = ReturnType<typeof readArguments>

function readArguments() {
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      only: { type: 'string', multiple: true },
      device: { type: 'string', default: 'wasm' },
      built: { type: 'boolean', default: false },
    },
  })
  const { dir, device, only, built } = values
  if (dir === undefined) throw new Error('--dir is missing.')
  if (device !== 'wasm' && device !== 'webgpu') throw new Error(`Unknown device "${device}".`)
  const models = listModels(resolve(dir)).filter(({ folder }) => !only || only.includes(folder))
  if (models.length === 0) throw new Error(`${dir} has no folder with a reference.json to compare.`)
  return { dir: resolve(dir), device, models, isBuilt: built }
}

const listModels = (dir: string): Model[] =>
  readdirSync(dir)
    .filter((name) => existsSync(join(dir, name, 'reference.json')))
    .toSorted()
    .map((folder) => {
      const text = readFileSync(join(dir, folder, 'reference.json'), 'utf8')
      return { folder, tag: `@tasks/${folder}`, reference: JSON.parse(text) as Reference }
    })

const pageOf = (device: string): string => `<!doctype html><title>tasks</title>
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/inorigin/catalog.json', device: '${device}' })
</script>`

interface InPage {
  server: { predict(tag: string, inputs: object): Promise<{ outputs: Record<string, unknown> }> }
}

/** Data URL of a file, and the input that takes it. */
interface FileInput {
  input: string
  url: string
}

/** Resolves with the outputs of a prediction. A file is passed as the page would read it. */
const predict = (page: Page, tag: string, inputs: object, file?: FileInput): Promise<unknown> =>
  page.evaluate(
    async ([name, given, one]) => {
      const { server } = globalThis as unknown as InPage
      const read = one && { [one.input]: await (await fetch(one.url)).blob() }
      const toBase64 = (bytes: Uint8ClampedArray): string =>
        btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
      /** Pictures and typed arrays cannot leave the page. */
      const toPlain = (value: unknown): unknown => {
        if (value instanceof ImageData) return { rgba: toBase64(value.data) }
        if (value instanceof Float32Array) return Array.from(value)
        if (Array.isArray(value)) return value.map(toPlain)
        if (typeof value !== 'object' || value === null) return value
        return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, toPlain(each)]))
      }
      return toPlain((await server.predict(name, { ...given, ...read })).outputs)
    },
    [tag, inputs, file] as const,
  )

/** Returns a file as a data URL. */
function toUrl(path: string): string {
  const type = path.endsWith('.png') ? 'image/png' : 'audio/wav'
  return `data:${type};base64,${readFileSync(path).toString('base64')}`
}

/** Inputs that take the files of tasks. The others take pictures. */
const FILE_INPUTS: Readonly<Partial<Record<string, string>>> = {
  'audio-classification': 'input_values',
  'automatic-speech-recognition': 'input_values',
  transcription: 'audio',
  cutout: 'input_image',
}

const PICTURE_INPUT = 'pixel_values'

/** Resolves with what `/v1/audio` answers to a form with a file, which OpenAI's clients send. */
async function postForm(page: Page, fields: object, url: string): Promise<unknown> {
  const { text, path } = await page.evaluate(
    async ([{ task, ...given }, source]) => {
      const form = new FormData()
      for (const [name, value] of Object.entries(given))
        for (const one of [value].flat())
          form.append(Array.isArray(value) ? `${name}[]` : name, one)
      form.append('file', await (await fetch(source)).blob(), 'speech.wav')
      const endpoint = task === 'translate' ? 'translations' : 'transcriptions'
      const response = await fetch(`/v1/audio/${endpoint}`, { method: 'POST', body: form })
      return { text: await response.text(), path: endpoint }
    },
    [fields as Record<string, string | string[]>, url] as const,
  )
  const answer = JSON.parse(text) as { error?: { message: string } }
  if (answer.error) throw new Error(`${path}: ${answer.error.message}`)
  return answer
}

async function post(page: Page, path: string, body: object): Promise<unknown> {
  const { text } = await fetchIn(page, path, body)
  const answer = JSON.parse(text) as { error?: { message: string } }
  if (answer.error) throw new Error(answer.error.message)
  return answer
}

/** Resolves with what the endpoint, or the predictor, answers to the input of a case. */
function ask(page: Page, dir: string, model: Model, one: Case): Promise<unknown> {
  const { tag, reference } = model
  if ('vectors' in one) return post(page, '/v1/embeddings', { model: tag, input: one.input })
  if ('query' in one) {
    const { query, documents } = one
    return post(page, '/v1/rerank', { model: tag, query, documents })
  }
  if ('speech' in one) {
    const words = one.speech.words && { timestamp_granularities: ['segment', 'word'] }
    const fields = { model: tag, response_format: 'verbose_json', ...words, ...one.form }
    return postForm(page, fields, toUrl(join(dir, '.inputs', one.file)))
  }
  const inputs = 'inputs' in one ? one.inputs : { top_k: 100 }
  const file = 'file' in one ? one.file : undefined
  const input = FILE_INPUTS[reference.task] ?? PICTURE_INPUT
  const own = file === undefined ? undefined : { input, url: toUrl(join(dir, '.inputs', file)) }
  return predict(page, tag, 'input' in one ? { ...inputs, text: one.input } : inputs, own)
}

async function main({ dir, device, models, isBuilt }: Arguments): Promise<boolean> {
  if (!isBuilt) buildDemo()
  const app = new CliApp()
  app.init('--no-guide')
  const added = models.map((model) => {
    const { code, err, out } = app.inorigin('add', join(dir, model.folder), '--tag', model.tag)
    return { model, refusal: code === 0 ? null : err.trim(), isQuiet: err.trim() === '', out }
  })
  const site = await serveStatic({
    folders: { '/': app.path('public') },
    pages: { '/app.html': pageOf(device) },
  })
  const browser = await openBrowser()
  let isGood = true
  try {
    const page = makePatient(await browser.newPage())
    await page.goto(`${site.url}/app.html`)
    await page.waitForFunction(() => 'server' in globalThis)
    for (const { model, refusal, isQuiet } of added) {
      let answers: Comparison[] = []
      let what = refusal
      try {
        if (what === null)
          for (const one of model.reference.cases)
            answers = [...answers, compareCase(one, await ask(page, dir, model, one))]
      } catch (error) {
        what = error instanceof Error ? error.message : String(error)
      }
      const isEqual = what === null && isQuiet && answers.every((answer) => answer.isEqual)
      isGood &&= isEqual
      console.log(toLine(model, answers, isQuiet ? what : (what ?? 'add printed errors')))
    }
    return isGood
  } finally {
    await browser.close()
    await site.close()
    app.remove()
  }
}

const HEAD =
  '| folder | task | equal answers | largest difference | fault |\n| --- | --- | --- | --- | --- |'

function toLine(model: Model, answers: readonly Comparison[], fault: string | null): string {
  const { folder, reference } = model
  const equal = answers.filter(({ isEqual }) => isEqual).length
  const largest = Math.max(0, ...answers.map(({ difference }) => difference))
  const cells = [
    folder,
    reference.task,
    `${equal} of ${reference.cases.length}`,
    largest.toPrecision(2),
    fault?.replaceAll(/\s+/g, ' ') ?? answers.find(({ fault: why }) => why)?.fault ?? '',
  ]
  return `| ${cells.join(' | ')} |`
}

await runCommand(USAGE, readArguments, (given) => {
  console.log(HEAD)
  return main(given)
})
