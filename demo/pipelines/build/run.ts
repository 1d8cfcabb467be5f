/**
 * `npm run pipelines`: fetches the models, builds the pages and serves them until it is interrupted.
 * `npm run pipelines -- --build` does not serve them.
 */
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { preview } from 'vite'
import { OUT, preparePipelines } from './prepare.ts'

const DEFAULT_PORT = 5174

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { build: { type: 'boolean', default: false } } })
  if (!existsSync('dist/cli.js'))
    throw new Error('There is no dist/cli.js. Run `npm run build` first.')
  await preparePipelines({ onStep: (step) => console.log(step) })
  if (values.build) return console.log(`The pages are in ${OUT}.`)
  const server = await preview({
    root: OUT,
    configFile: false,
    build: { outDir: OUT },
    preview: { port: Number(process.env['PORT'] ?? DEFAULT_PORT), strictPort: true },
  })
  const [url = ''] = server.resolvedUrls?.local ?? []
  console.log(`${url}ocr.html\n${url}voice.html`)
}

await main()
