/**
 * `node test/gguf/llama.mjs ENTRY FILE`: tokenizes texts with llama.cpp, without and with special
 * tokens. The texts come as a JSON list from the standard input. The result goes as JSON to the
 * standard output. ENTRY is the module of llama.cpp's package.
 */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [entry, path] = process.argv.slice(2)
const texts = JSON.parse(readFileSync(0, 'utf8'))

const { getLlama } = await import(pathToFileURL(entry).href)
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'disabled' })
const model = await llama.loadModel({ modelPath: path, vocabOnly: true })
const tokenize = (parsed) => texts.map((text) => model.tokenize(text, parsed))
const result = {
  plain: tokenize(false),
  parsed: tokenize(true),
  endTokens: [...model.iterateAllTokens()].filter((id) => model.isEogToken(id)),
  addsBos: model.tokens.shouldPrependBosToken,
}
await model.dispose()
await llama.dispose()

process.stdout.write(JSON.stringify(result))
