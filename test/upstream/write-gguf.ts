/** `node .ci/build/run.mjs test/upstream/write-gguf.ts FILE`: writes the guide for llama.cpp. */
import { writeGuide } from './guide-gguf.ts'

const [path] = process.argv.slice(2)
if (path === undefined) throw new Error('Pass the path of the file to write.')
writeGuide(path)
console.log(`Wrote ${path}.`)
