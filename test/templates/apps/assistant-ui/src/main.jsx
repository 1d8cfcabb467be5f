import { createRoot } from 'react-dom/client'
import { Assistant } from './Assistant.jsx'

createRoot(document.querySelector('#app')).render(<Assistant />)
