import { serve } from 'inorigin'
import { chat } from './chat.js'

/** Any tag of the catalog: `server.models.list()` lists them. */
const MODEL = '__MODEL__'

const [status, progress, log, form, input] = ['status', 'progress', 'log', 'form', 'input'].map(
  (id) => document.getElementById(id),
)
const messages = []

function show(className, textContent) {
  const line = Object.assign(document.createElement('p'), { className, textContent })
  return log.appendChild(line)
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  messages.push({ role: 'user', content: input.value })
  show('user', input.value)
  const line = show('assistant', '')
  input.value = ''
  try {
    const server = await starting
    for await (const piece of chat(server, MODEL, messages)) line.textContent += piece
    messages.push({ role: 'assistant', content: line.textContent })
  } catch (error) {
    messages.pop()
    line.textContent = `Error: ${error.message}`
  }
  button.disabled = false
})

async function start() {
  const server = await serve()
  await server.models.load(MODEL, {
    onProgress({ phase, loadedBytes, totalBytes }) {
      status.textContent = `${MODEL}: ${phase}`
      progress.value = totalBytes > 0 ? loadedBytes / totalBytes : 0
    },
  })
  status.textContent = `${MODEL} is ready. Nothing you type leaves this device.`
  progress.hidden = true
  form.querySelector('button').disabled = false
  return server
}

const starting = start()
starting.catch((error) => (status.textContent = `Error: ${error.message}`))
