import { playwright } from '@vitest/browser-playwright'
import { defaultClientConditions } from 'vite'
import { defineConfig } from 'vitest/config'
import { chromiumArgs } from './test/setup/chromium.ts'

/** Takes the builds of onnxruntime-web that leave the wasm files where they are. */
const conditions = ['onnxruntime-web-use-extern-wasm', ...defaultClientConditions]

export default defineConfig({
  resolve: { conditions },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          environment: 'node',
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        optimizeDeps: {
          // Found late, a dependency makes the page reload in the middle of a test.
          include: ['@huggingface/jinja', '@huggingface/tokenizers', 'hono/tiny', 'idb', 'valibot'],
          exclude: ['onnxruntime-web'],
        },
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          globalSetup: 'test/setup/browser.ts',
          testTimeout: 60_000,
          sequence: { groupOrder: 1 },
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            fileParallelism: false,
            provider: playwright({
              launchOptions: {
                get executablePath() {
                  return process.env['CHROMIUM_PATH']
                },
                args: chromiumArgs(),
              },
            }),
            instances: [{ browser: 'chromium' }],
          },
        },
      },
    ],
  },
})
