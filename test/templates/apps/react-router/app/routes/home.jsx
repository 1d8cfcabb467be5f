import { useEffect, useState } from 'react'
import { ask } from '../ask.js'

export default function Home() {
  const [answer, setAnswer] = useState('')
  useEffect(() => void ask().then(setAnswer), [])
  return <p id="answer">{answer}</p>
}
