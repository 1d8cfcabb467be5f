/** Damaged GGUF files: each is refused in a sentence, or is a whole model. */
import { expect, test } from 'vitest'
import { readGguf, toByteSource } from '../../../../src/engine/gguf/header.ts'
import { createGgufDecoder, METADATA } from '../../../support/gguf-decoder.ts'
import { type Outcome, tryGguf } from '../../../support/gguf-mutations.ts'
import {
  byteLevelMetadata,
  type ExtraToken,
  sentencePieceMetadata,
} from '../../../support/gguf-tokenizers.ts'
import type { Written } from '../../../support/gguf.ts'
import { mutate } from '../../../support/mutate.ts'
import { createChance } from '../../../support/random.ts'
import { runs } from '../../../support/runs.ts'

const TEMPLATE = { text: '{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}' }
const EXTRA: readonly ExtraToken[] = [['<|eot_id|>', 3]]

const fileWith = (tokenizer: Record<string, Written>, type: 'Q8_0' | 'Q4_1') =>
  createGgufDecoder(type, { ...METADATA, ...tokenizer, 'tokenizer.chat_template': TEMPLATE }).file

const FILES = [
  fileWith(byteLevelMetadata('llama-bpe', EXTRA), 'Q8_0'),
  fileWith(sentencePieceMetadata(EXTRA), 'Q4_1'),
]

/** Most bytes of weights that such a small file becomes. */
const MAX_BYTES = 2 ** 22
/** Most milliseconds for one file, on a busy machine. */
const MAX_MILLISECONDS = 5_000

async function outcomesOf(count: number, where: 'head' | 'file'): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (let seed = 0; seed < count; seed += 1) {
    const chance = createChance(seed)
    const file = chance.pick(FILES)
    const { dataOffset } = await readGguf(toByteSource(new Blob([file])))
    const damaged = mutate(file, chance, where === 'head' ? dataOffset : file.length)
    const begin = performance.now()
    const outcome = await tryGguf(damaged).catch((cause: unknown) => {
      throw new Error(`The file of the seed ${seed} fails: ${String(cause)}`, { cause })
    })
    expect(performance.now() - begin).toBeLessThan(MAX_MILLISECONDS)
    outcomes.push(outcome)
  }
  return outcomes
}

test.each(['head', 'file'] as const)(
  'a damaged %s is refused in a sentence, or is a model of the same size',
  { timeout: 600_000 },
  async (where) => {
    const outcomes = await outcomesOf(runs(60, 1_000), where)
    for (const outcome of outcomes) {
      if ('error' in outcome) expect(outcome.error).toMatch(/^damaged\.gguf|^the folder/)
      else expect(outcome.bytes).toBeLessThan(MAX_BYTES)
    }
    const refused = outcomes.filter((outcome) => 'error' in outcome).length
    expect(refused).toBeGreaterThan(outcomes.length * (where === 'head' ? 0.3 : 0.02))
    expect(refused).toBeLessThan(outcomes.length)
  },
)
