/** The command `inorigin catalog refresh`. */
import { defineCommand } from '../command.ts'
import { print, printLines } from '../output.ts'
import { refreshCatalog } from '../refresh.ts'

export const REFRESH = defineCommand({
  name: 'catalog refresh',
  operands: [{ name: 'file', about: 'The catalog, a JSON document', isRequired: true }],
  usage: '[--host <url>]',
  about: [
    'Looks up every model that a catalog lists by its hub repository or as a WebLLM model',
    '("mlc"), and writes its commit, files, lengths and hashes into the catalog, so that',
    'browsers need no look-up. The environment variable HF_TOKEN may hold an access token for',
    'private repositories.',
  ],
  options: {
    host: {
      type: 'string',
      value: '<url>',
      about: 'Mirror to use instead of the hub that entries name',
    },
  },
  async run({ host }, [file = '']) {
    const { refreshed, failed } = await refreshCatalog({
      file,
      host,
      onEntry: (tag, repository) => printLines(`${tag}: looking up ${repository}`),
      signal: new AbortController().signal,
    })
    print(
      process.stderr,
      failed.map(({ tag, why }) => `${tag} was not changed. ${why}`),
    )
    printLines(`${file}: ${refreshed.length} models refreshed, ${failed.length} not.`)
    return failed.length > 0 ? 1 : 0
  },
})
