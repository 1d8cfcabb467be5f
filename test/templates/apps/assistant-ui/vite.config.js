import react from '@vitejs/plugin-react'
import { inorigin } from 'inorigin/vite'
import { defineConfig } from 'vite'

export default defineConfig({ plugins: [react(), inorigin()] })
