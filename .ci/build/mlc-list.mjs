/** Writes WebLLM's own list of models, as the installed package has it: `npm run mlc-list`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { prebuiltAppConfig } from '@mlc-ai/web-llm'

const at = (path) => new URL(`../../${path}`, import.meta.url)
const { version } = JSON.parse(
  readFileSync(at('node_modules/@mlc-ai/web-llm/package.json'), 'utf8'),
)
const records = prebuiltAppConfig.model_list.map((record) => `    ${JSON.stringify(record)}`)
const text = `{\n  "version": "${version}",\n  "records": [\n${records.join(',\n')}\n  ]\n}\n`
writeFileSync(at('src/catalog/mlc/list.json'), text)
