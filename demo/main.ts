/** Entry of the playground, which creates its parts. Each part is one module. */
import { createAttachments } from './attachments.ts'
import { createChat } from './chat/chat.ts'
import { createCompare } from './compare/index.ts'
import { createComposer } from './composer.ts'
import { showDevice } from './device.ts'
import { byId } from './dom.ts'
import { createSidebar } from './history/sidebar.ts'
import { createHistoryStore } from './history/store.ts'
import { createInspector } from './inspector.ts'
import { createLending } from './lend.ts'
import { createLoading } from './loading.ts'
import { createModels } from './models.ts'
import { createPalette } from './palette/index.ts'
import { keepStyle } from './kept.ts'
import { openPages } from './pages.ts'
import { createPanel } from './panel.ts'
import { createSettings } from './settings.ts'
import { createShelf } from './shelf.ts'
import { start } from './start.ts'
import { createTheme } from './theme.ts'
import { createTools } from './tools/index.ts'

byId('unstarted', HTMLElement).remove()
createTheme()
keepStyle()
const panel = createPanel()
const { starting: server, restart } = start()
const loading = createLoading(server)
const models = createModels(server, loading)
const history = createHistoryStore()
const tools = createTools()
const composer = createComposer()

const chat = createChat({
  server,
  loading,
  models,
  settings: createSettings(),
  composer,
  attachments: createAttachments({ composer, admit: models.admitImages }),
  inspector: createInspector(server),
  history,
  tools,
})
createSidebar(history, chat)
createLending(server)
let hasPredictors = false
const showPredictors = (): void => {
  if (hasPredictors) return
  hasPredictors = true
  void import('./predictors/index.ts').then(({ createPredictors }) => createPredictors(server))
}
panel.onShow('predictors', [showPredictors])
openPages({ starting: server, restart, models })
panel.onShow('settings', [showDevice(server), createShelf(server)])
createCompare(server, chat)
createPalette()
