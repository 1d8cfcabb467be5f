import { StrictMode, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { ask } from './ask.js'

function App() {
  const [answer, setAnswer] = useState('')
  useEffect(() => void ask().then(setAnswer), [])
  return <p id="answer">{answer}</p>
}

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
