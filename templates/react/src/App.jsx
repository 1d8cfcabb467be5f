import { serve } from 'inorigin'
import { useModel, useServer } from 'inorigin/react'
import { useEffect, useState } from 'react'
import { chat } from './chat.js'

/** Any tag of the catalog: `server.models.list()` lists them. */
const MODEL = '__MODEL__'

export function App() {
  const { server, error: startError } = useServer(serve)
  const { state, progress, error: loadError, load } = useModel(MODEL)
  const error = startError ?? loadError
  const isReady = state === 'loaded'
  const [messages, setMessages] = useState([])
  const [isBusy, setBusy] = useState(false)

  useEffect(() => void load(), [load])

  async function send(event) {
    event.preventDefault()
    const form = event.currentTarget
    const asked = [...messages, { role: 'user', content: new FormData(form).get('question') }]
    form.reset()
    setBusy(true)
    let content = ''
    const show = () => setMessages([...asked, { role: 'assistant', content }])
    try {
      for await (const piece of chat(server, MODEL, asked)) {
        content += piece
        show()
      }
    } catch (failure) {
      content = `Error: ${failure.message}`
      show()
    }
    setBusy(false)
  }

  return (
    <main>
      <h1>__NAME__</h1>
      {error && <p id="status">Error: {error.message}</p>}
      {!error && <p id="status">{isReady ? `${MODEL} is ready.` : `${MODEL}: ${state}`}</p>}
      {progress && <progress value={progress.loadedBytes} max={progress.totalBytes || 1} />}
      <div id="log" aria-live="polite">
        {messages.map(({ role, content }, index) => (
          <p key={index} className={role}>
            {content}
          </p>
        ))}
      </div>
      <form onSubmit={send}>
        <input name="question" placeholder="Ask something" autoComplete="off" required />
        <button disabled={!server || isBusy}>Send</button>
      </form>
    </main>
  )
}
