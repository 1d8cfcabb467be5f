/** The buttons that open the pages of models and of the device, whose code is loaded then. */
import { byId } from './dom.ts'
import type { Models } from './models.ts'
import { type Drops, receiveModels } from './models-page/dropped.ts'
import { createPage } from './page.ts'
import type { PageServer } from './start.ts'

interface Parts extends PageServer {
  models: Models
}

export function openPages({ starting, restart, models }: Parts): void {
  const drops: Drops = { waiting: [] }
  const openModels = createPage('Models', async () => {
    const { fillModelsPage } = await import('./models-page/page.ts')
    return fillModelsPage({ starting, restart, models, drops })
  })
  receiveModels((files) => {
    if (drops.take) drops.take(files)
    else drops.waiting.push(files)
    openModels()
  })
  const openDevice = createPage('Device', async () => {
    const { fillDevicePage } = await import('./device/page.ts')
    return fillDevicePage(starting)
  })
  for (const id of ['models-open', 'shelf-open']) {
    byId(id, HTMLButtonElement).addEventListener('click', openModels)
  }
  byId('device-open', HTMLButtonElement).addEventListener('click', openDevice)
}
