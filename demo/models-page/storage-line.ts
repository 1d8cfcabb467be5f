/** The line about the storage of this origin, with the wish to keep it. */
import type { Server } from '../../src/index.ts'
import { button, element } from '../dom.ts'
import { bytes } from '../format.ts'

export function createStorageLine(server: Server) {
  const line = element('div', 'row')
  const text = element('p', 'quiet')
  const keep = button('Ask the browser to keep it', 'plain', () => {
    keep.disabled = true
    void server.storage.persist().then((agrees) => {
      keep.textContent = agrees ? 'The browser keeps it' : 'The browser does not promise it'
      return refresh()
    })
  })

  async function refresh(): Promise<void> {
    const {
      bytes: models,
      assetBytes,
      originBytes,
      quotaBytes,
      persisted,
    } = await server.storage.usage()
    const facts = [`${bytes(models)} of models`, `${bytes(assetBytes)} to start without a network`]
    if (originBytes !== null && quotaBytes !== null) {
      facts.push(`${bytes(originBytes)} of ${bytes(quotaBytes)} that the browser allows`)
    }
    facts.push(persisted ? 'kept until you delete it' : 'the browser may delete it')
    text.textContent = `Storage: ${facts.join(' · ')}`
    keep.hidden = persisted
  }

  line.append(text, keep)
  return { element: line, refresh }
}
