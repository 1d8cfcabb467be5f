/**
 * Measures how well the passages of the documentation tell questions about inorigin from others, and with
 * `--answers`, how many of them SmolLM2 answers from the passages. From the repository's root:
 * `node .ci/build/run.mjs demo/models/guide/evaluation/passages.mjs [--answers] [--every N]`
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright'
import { embedPassage, openEmbed, readPassages } from '../../../../.ci/build/passages.ts'
import { chromiumLaunch } from '../../../../test/setup/chromium.ts'
import { serveDemo } from '../../../../test/setup/demo.ts'
import { marks } from './marks.mjs'

const ROOT = join(import.meta.dirname, '../../../..')
const MODEL = '@huggingfacetb/smollm2-135m'
const LIMITS = [0.4, 0.44, 0.48, 0.52, 0.56]
/** Passages that are searched for an answer. */
const BEST = 3

/** Answers of the guide about itself, and to small talk. */
const PERSONAL =
  /inorigin guide|small language model|small sum|^person$|3 million|2,048|^English$|can be wrong|this chat|no access|^program$|only add|345 \+ 278|thank you|welcome|Goodbye|^kind|other words|No problem|^else$|^model$|your device|your own device/

const { values: options } = parseArgs({
  options: {
    answers: { type: 'boolean', default: false },
    every: { type: 'string', default: '1' },
  },
})

/** The last words of a case, because a few have earlier turns. */
const questionOf = ({ say }) => [say].flat().at(-1)

function groupOf({ group, want }) {
  if (group !== 'topics') return group
  return want.any.some((part) => PERSONAL.test(part)) ? 'the guide, small talk' : 'inorigin'
}

function readCases() {
  const groups = new Map()
  for (const name of ['templates', 'free']) {
    const { cases } = JSON.parse(readFileSync(new URL(`${name}.json`, import.meta.url), 'utf8'))
    for (const item of cases.filter((each) => /^(topics|unknown|facts)$/.test(each.group)))
      groups.set(groupOf(item), [...(groups.get(groupOf(item)) ?? []), item])
  }
  return groups
}

async function findBest(passages, embed, item) {
  const wanted = await embed(questionOf(item))
  return passages
    .map((passage) => ({ passage, score: dot(passage.vector, wanted) }))
    .sort((one, other) => other.score - one.score)
    .slice(0, BEST)
}

const dot = (one, other) => one.reduce((sum, number, at) => sum + number * other[at], 0)

const share = (count, of) => `${((100 * count) / of).toFixed(1)} % of ${of}`

const isIn = (text, { want }) => marks(want, { content: text }).right

function toPrompt(found, item) {
  const texts = found.map(({ passage }) => `${passage.page}: ${passage.heading}\n${passage.text}`)
  return `Documentation of inorigin:\n\n${texts.join('\n\n')}\n\nAnswer this question from the documentation in one or two sentences: ${questionOf(item)}`
}

/** Asks SmolLM2 in the built playground. Returns the cases that it answers right. */
async function askAll(asked) {
  const demo = await serveDemo()
  const browser = await chromium.launch(chromiumLaunch())
  try {
    const page = await browser.newPage()
    await page.goto(`${demo.url}?device=wasm`)
    await page.waitForFunction(() => window.inorigin !== undefined, undefined, { timeout: 120_000 })
    let right = 0
    for (const { item, prompt } of asked) {
      const content = await page.evaluate(
        async ([model, text]) => {
          const messages = [{ role: 'user', content: text }]
          const body = { model, messages, temperature: 0, max_tokens: 80 }
          const response = await fetch('/v1/chat/completions', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          })
          return (await response.json()).choices?.[0].message.content ?? ''
        },
        [MODEL, prompt],
      )
      const isRight = isIn(content, item)
      if (isRight) right += 1
      console.log(
        `${isRight ? 'right' : 'wrong'}: ${questionOf(item)} => ${JSON.stringify(content)}`,
      )
    }
    return right
  } finally {
    await browser.close()
    await demo.close()
  }
}

const embed = await openEmbed(join(ROOT, 'demo/models/embed'))
const passages = []
for (const passage of readPassages(ROOT))
  passages.push({ ...passage, vector: await embedPassage(passage, embed) })
console.log(`${passages.length} passages`)
const asked = []
for (const [group, cases] of readCases()) {
  const best = []
  for (const item of cases) best.push(await findBest(passages, embed, item))
  const above = LIMITS.map((limit) => {
    const count = best.filter(([first]) => first.score >= limit).length
    return `${limit}: ${share(count, cases.length)}`
  })
  console.log(`${group}: above ${above.join(', ')}`)
  if (group !== 'inorigin') continue
  const found = cases.filter((item, at) =>
    best[at].some(({ passage }) =>
      isIn(`${passage.page} ${passage.heading} ${passage.text}`, item),
    ),
  )
  console.log(
    `${group}: the words of the answer are in one of ${BEST}: ${share(found.length, cases.length)}`,
  )
  asked.push(...cases.map((item, at) => ({ item, prompt: toPrompt(best[at], item) })))
}
if (options.answers) {
  const some = asked.filter((_, at) => at % Number(options.every) === 0)
  console.log(`inorigin: SmolLM2 answers right: ${share(await askAll(some), some.length)}`)
}
process.exit()
