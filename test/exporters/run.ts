/**
 * `npm run test:exporters -- --dir DIR`: adds each folder of `tools/exporters/make.py` with
 * `inorigin add`, asks its model through `/v1` in Chromium, and prints how the answers compare with
 * those of transformers and ONNX Runtime in `reference.json`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright'
import { buildDemo } from '../setup/demo.ts'
import { runCommand } from '../support/command.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { CliApp } from '../support/cli-app.ts'
import { CHAT, fetchIn } from '../support/requests.ts'
import { serveStatic } from '../support/static.ts'
import { compareAnswer, type Comparison, type Completion, type Reference } from './compare.ts'

const USAGE =
  'npm run test:exporters -- --dir DIR [--only NAME] [--precision NAME] [--device wasm|webgpu] [--max-prompt TOKENS] [--tolerance N] [--built]'

/** One precision of one folder. */
interface Model {
  folder: string
  precision: string
  tag: string
  reference: Reference
}

/** The comparison of one answer, with the name of its request. */
type Answer = Comparison & { name: string }

/** One row of the table. */
interface Row extends Model {
  /** Absent if the model could not be added, or did not load. */
  answers?: Answer[]
  /** What `inorigin add`, or the first request, said instead. */
  refusal?: { at: 'add' | 'load'; message: string }
}

type Arguments = ReturnType<typeof readArguments>

function readArguments() {
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      only: { type: 'string', multiple: true },
      precision: { type: 'string', multiple: true },
      device: { type: 'string', default: 'wasm' },
      'max-prompt': { type: 'string', default: 'Infinity' },
      tolerance: { type: 'string', default: '0.05' },
      built: { type: 'boolean', default: false },
    },
  })
  const { dir, device, only, precision, built } = values
  if (dir === undefined) throw new Error('--dir is missing.')
  if (device !== 'wasm' && device !== 'webgpu') throw new Error(`Unknown device "${device}".`)
  const tolerance = Number(values.tolerance)
  if (!(tolerance >= 0)) throw new Error('--tolerance must be a number of at least 0.')
  const maxPrompt = Number(values['max-prompt'])
  if (!(maxPrompt > 0)) throw new Error('--max-prompt must be a number greater than 0.')
  const models = listModels(resolve(dir)).filter(
    (model) =>
      (!only || only.includes(model.folder)) && (!precision || precision.includes(model.precision)),
  )
  if (models.length === 0) throw new Error(`${dir} has no folder with a reference.json to compare.`)
  return { dir: resolve(dir), device, tolerance, maxPrompt, models, isBuilt: built }
}

function listModels(dir: string): Model[] {
  const folders = readdirSync(dir).filter((name) => existsSync(join(dir, name, 'reference.json')))
  return folders.toSorted().flatMap((folder) => {
    const file = join(dir, folder, 'reference.json')
    const reference = JSON.parse(readFileSync(file, 'utf8')) as Reference
    return Object.keys(reference.precisions).map((precision) => {
      const tag = `@exporters/${folder}.${precision}`.toLowerCase()
      return { folder, precision, tag, reference }
    })
  })
}

/** Adds the models to the app. Returns a row for each, with the refusal of those that were not added. */
function addModels({ dir, models }: Arguments, app: CliApp): Row[] {
  return models.map((model) => {
    const options = [
      '--tag',
      model.tag,
      '--dtypes',
      model.precision,
      '--max-file-bytes',
      '1000000000',
    ]
    const { code, err } = app.inorigin('add', join(dir, model.folder), ...options)
    return code === 0 ? model : { ...model, refusal: { at: 'add', message: err.trim() } }
  })
}

const pageOf = (device: string): string => `<!doctype html><title>exporters</title>
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/inorigin/catalog.json', device: '${device}' })
</script>`

/** Returns the requests of a model whose prompts are not too long, each with its reference. */
function requestsOf({ reference, precision }: Model, maxPrompt: number) {
  const answers = reference.precisions[precision]?.answers ?? []
  return reference.requests.flatMap((request, at) => {
    const expected = answers[at]
    if (!expected) throw new Error(`reference.json has no answer "${request.name}".`)
    return expected.promptTokens <= maxPrompt ? [{ ...request, expected }] : []
  })
}

type Request = ReturnType<typeof requestsOf>[number]

/** Asks all requests of a model. Those whose names begin with "at once" run together. */
async function askAll(page: Page, row: Row, { maxPrompt, tolerance }: Arguments) {
  const ask = async ({ name, messages, expected }: Request): Promise<Answer> => {
    const body = {
      model: row.tag,
      messages,
      max_completion_tokens: expected.steps.length,
      temperature: 0,
      logprobs: true,
    }
    const { text } = await fetchIn(page, CHAT, body)
    const answer = JSON.parse(text) as Completion & { error?: { message: string } }
    if (answer.error) throw new Error(answer.error.message)
    return { name, ...compareAnswer(expected, answer, tolerance) }
  }
  const found: Answer[] = []
  let together: Promise<Answer>[] = []
  for (const request of requestsOf(row, maxPrompt)) {
    if (request.name.startsWith('at once')) {
      together.push(ask(request))
      continue
    }
    found.push(...(await Promise.all(together)))
    together = []
    found.push(await ask(request))
  }
  return [...found, ...(await Promise.all(together))]
}

async function main(given: Arguments): Promise<boolean> {
  if (!given.isBuilt) buildDemo()
  const app = new CliApp()
  app.init('--no-guide')
  const rows = addModels(given, app)
  const site = await serveStatic({
    folders: { '/': app.path('public') },
    pages: { '/app.html': pageOf(given.device) },
  })
  const browser = await openBrowser()
  try {
    const page = makePatient(await browser.newPage())
    await page.goto(`${site.url}/app.html`)
    await page.waitForFunction(() => 'server' in globalThis)
    for (const row of rows) {
      if (!row.refusal) {
        try {
          row.answers = await askAll(page, row, given)
        } catch (error) {
          row.refusal = {
            at: 'load',
            message: error instanceof Error ? error.message : String(error),
          }
        }
      }
      console.log(toLine(row))
    }
    return rows.every(isGood)
  } finally {
    await browser.close()
    await site.close()
    app.remove()
  }
}

const isGood = ({ answers }: Row): boolean =>
  answers !== undefined && answers.every(({ tokens, equal, fault }) => equal === tokens && !fault)

const HEAD =
  '| exporter | architecture | folder, precision | compared with | added | loads | equal tokens | ties | largest difference |\n' +
  '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'

function toLine(row: Row): string {
  const { reference, folder, precision, answers, refusal } = row
  const from = reference.precisions[precision]?.from ?? ''
  const head = [reference.exporter, reference.architecture, `${folder}, ${precision}`, from]
  if (!answers) {
    const what = refusal?.message.replaceAll(/\s+/g, ' ') ?? ''
    const cells =
      refusal?.at === 'add' ? [`no: ${what}`, '', '', '', ''] : ['yes', `no: ${what}`, '', '', '']
    return `| ${[...head, ...cells].join(' | ')} |`
  }
  const sum = (count: (each: Comparison) => number) =>
    answers.reduce((total, each) => total + count(each), 0)
  const faults = answers.flatMap(({ name, fault }) => (fault === null ? [] : [`${name}: ${fault}`]))
  const left = answers.flatMap(({ name, tokens, equal }) =>
    equal === tokens ? [] : [`${name} ${equal} of ${tokens}`],
  )
  const equal = `${sum((each) => each.equal)} of ${sum((each) => each.tokens)}`
  const cells = [
    'yes',
    'yes',
    [equal, ...left, ...faults].join('; '),
    `${sum((each) => (each.isTie ? 1 : 0))}`,
    Math.max(...answers.map(({ difference }) => difference)).toPrecision(2),
  ]
  return `| ${[...head, ...cells].join(' | ')} |`
}

await runCommand(USAGE, readArguments, (given) => {
  console.log(HEAD)
  return main(given)
})
