/** Checks of random sets of tools in every format of calls. */
import { createConstraintCompiler } from '../../src/engine/constraint/compiler.ts'
import type { TokenTable } from '../../src/engine/constraint/vocabulary.ts'
import { InoriginError } from '../../src/error.ts'
import { createToolParser } from '../../src/generation/tools/parser.ts'
import { callableTools, FORMATS, toolConstraint } from '../../src/generation/tools/index.ts'
import type { Tool, ToolUse } from '../../src/types/index.ts'
import { type Tally, validator } from './keeping.ts'
import { createChance } from './random.ts'
import { randomParameters, type Schema } from './schemas.ts'
import { walk } from './walk.ts'

const signal = new AbortController().signal

/** Checks that a demanded answer is one call or several, whose arguments are valid. */
export async function tallyTools(
  vocabulary: TokenTable,
  from: number,
  count: number,
): Promise<Tally> {
  const tally: Tally = { schemas: 0, refused: new Map(), texts: 0, values: 0, failures: [] }
  const constraints = createConstraintCompiler(vocabulary)
  for (let seed = from; seed < from + count; seed++) {
    const chance = createChance(seed)
    const tools = Array.from({ length: 1 + chance.below(4) }, (_, index): Tool => {
      const name = chance.pick(['get', 'set_value', 'find-all', 'a'])
      return { name: `${name}_${index}`, parameters: randomParameters(chance).schema }
    })
    const parallel = chance.often(0.5)
    const use: ToolUse = { tools, choice: chance.often(0.7) ? 'required' : 'auto', parallel }
    const format = chance.pick(FORMATS)
    tally.schemas += 1
    try {
      const matcher = await constraints.open(toolConstraint(format, use), signal)
      const written = await walk(matcher, vocabulary, chance, 20)
      matcher.close()
      const what = `seed ${seed}, ${format.name}, ${use.choice}: ${written.text}`
      if (written.stuck) tally.failures.push(`stuck, ${what}`)
      if (!written.ended) continue
      tally.texts += 1
      const calls = read(written.text)
      tally.values += calls.length
      if (use.choice === 'required' && calls.length === 0) tally.failures.push(`no call, ${what}`)
      if (!parallel && calls.length > 1) tally.failures.push(`too many calls, ${what}`)
      for (const call of calls) {
        const schema = tools.find(({ name }) => name === call.name)?.parameters
        if (!schema || !isValid(schema as Schema, call.arguments)) {
          tally.failures.push(
            `invalid ${call.name}(${call.arguments}), ${what}\n${JSON.stringify(schema)}`,
          )
        }
      }
    } catch (error) {
      if (!(error instanceof InoriginError) || error.kind !== 'invalid_request') throw error
      const why = error.message.replace(/^\S+/, '').slice(0, 60)
      tally.refused.set(why, (tally.refused.get(why) ?? 0) + 1)
    }

    function read(text: string): { name: string; arguments: string }[] {
      const parser = createToolParser({ format, tools: callableTools(use) })
      const calls: { name: string; arguments: string }[] = []
      for (const part of [...parser.push(text), ...parser.end(false)]) {
        if (part.type === 'call') calls.push({ name: part.name, arguments: '' })
        const call = calls.at(-1)
        if (part.type === 'arguments' && call) call.arguments += part.text
      }
      return calls
    }
  }
  constraints.close()
  return tally
}

function isValid(schema: Schema, text: string): boolean {
  try {
    return validator(schema)(JSON.parse(text))
  } catch {
    return false
  }
}
