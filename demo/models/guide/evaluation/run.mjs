/**
 * Asks the guide the cases of templates.json and free.json through the public endpoint of the built
 * playground, in a headless Chromium, and prints how many it answers right. From the repository's root:
 * `node .ci/build/run.mjs demo/models/guide/evaluation/run.mjs [--sample N] [--group TEXT] [--show N]`
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright'
import { chromiumLaunch } from '../../../../test/setup/chromium.ts'
import { buildDemo, serveDemo } from '../../../../test/setup/demo.ts'
import { marks } from './marks.mjs'

const ROOT = join(import.meta.dirname, '../../../..')
const MODEL = '@inorigin/guide'

const { values: options } = parseArgs({
  options: {
    sample: { type: 'string', default: 'Infinity' },
    group: { type: 'string', default: '' },
    show: { type: 'string', default: '0' },
    url: { type: 'string' },
    file: { type: 'string', multiple: true, default: ['templates', 'free'] },
    device: { type: 'string', default: 'wasm' },
  },
})

/** The body of `POST /v1/chat/completions` that asks a case. */
function request(library, { say, called = [], tools, schema, json, think = false, system }) {
  const turns = [say].flat().map((content, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content,
  }))
  const calls = called.map(({ name, arguments: args }, index) => ({
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }))
  const results = called.map(({ result }, index) => ({
    role: 'tool',
    tool_call_id: `call_${index}`,
    content: result,
  }))
  const format = schema
    ? { type: 'json_schema', json_schema: { name: 'answer', schema } }
    : json && { type: 'json_object' }
  return {
    model: MODEL,
    temperature: 0,
    max_completion_tokens: 300,
    reasoning_effort: think ? 'low' : 'none',
    messages: [
      ...(system ? [{ role: 'system', content: system }] : []),
      ...turns,
      ...(calls.length > 0 ? [{ role: 'assistant', content: null, tool_calls: calls }] : []),
      ...results,
    ],
    ...(tools && {
      tools: tools.map((tool) => ({ type: 'function', function: library[tool] ?? tool })),
    }),
    ...(format && { response_format: format }),
  }
}

async function serve() {
  if (!existsSync(join(ROOT, 'dist-demo/sw.js'))) buildDemo()
  return serveDemo()
}

/** Asks one case after the other; a case that the server refuses is wrong, and the reason is told. */
async function askAll(page, name) {
  const { tools, cases } = JSON.parse(
    readFileSync(new URL(`${name}.json`, import.meta.url), 'utf8'),
  )
  const scores = new Map()
  const asked = new Map()
  for (const item of cases.filter(({ group }) => group.includes(options.group))) {
    const number = (asked.get(item.group) ?? 0) + 1
    if (number > Number(options.sample)) continue
    asked.set(item.group, number)
    const { status, body } = await page.evaluate(
      async (sent) => {
        const response = await fetch('/v1/chat/completions', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(sent),
        })
        return { status: response.status, body: await response.json() }
      },
      request(tools, item),
    )
    const message = body.choices?.[0]?.message ?? {}
    for (const [what, right] of Object.entries(marks(item.want, message))) {
      const key = what === 'right' ? item.group : `${item.group}, ${what}`
      const score = scores.get(key) ?? { right: 0, of: 0, wrong: [] }
      scores.set(key, score)
      score.of += 1
      if (right) score.right += 1
      else
        score.wrong.push({ say: item.say, want: item.want, got: status === 200 ? message : body })
    }
  }
  for (const [key, { right, of, wrong }] of [...scores].sort()) {
    console.log(`${name}: ${key}: ${right} of ${of} (${((100 * right) / of).toFixed(1)} %)`)
    for (const one of wrong.slice(0, Number(options.show))) console.log(`   ${JSON.stringify(one)}`)
  }
}

const demo = options.url ? { url: options.url, close() {} } : await serve()
const browser = await chromium.launch(chromiumLaunch())
try {
  const page = await browser.newPage()
  await page.goto(new URL(`?device=${options.device}`, demo.url).href)
  await page.waitForFunction(() => window.inorigin !== undefined, undefined, { timeout: 60_000 })
  await page.evaluate(async (tag) => {
    await window.inorigin.models.load(tag)
  }, MODEL)
  for (const name of options.file) await askAll(page, name)
} finally {
  await browser.close()
  await demo.close()
}
