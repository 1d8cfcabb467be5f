/** The hooks in React itself, with its strict mode, on a test server. */
import { act, createElement, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { beforeAll, expect, test } from 'vitest'
import {
  useModel,
  usePredictor,
  useServer,
  type UsedModel,
  type UsedPredictor,
} from '../../../src/extras/react.ts'
import { createTestServer } from '../../../src/extras/testing/server.ts'

const chat = '@me/chat'
const double = '@me/double'

const gate = { allow: (): void => {} }
let opened = 0
const server = createTestServer({
  models: [
    {
      tag: chat,
      name: 'Chat',
      bytes: 10,
      answers: ['Hi'],
      load: () => new Promise((resolve) => Object.assign(gate, { allow: resolve })),
    },
  ],
  predictors: [
    {
      tag: double,
      signature: {
        inputs: [{ name: 'x', type: 'float32' }],
        outputs: [{ name: 'y', type: 'float32' }],
      },
      predict({ x }) {
        if (typeof x !== 'number') throw new Error('x is no number.')
        return { y: x * 2 }
      },
    },
  ],
})

/** What the components rendered last. */
const shown = {} as { model: UsedModel; predictor: UsedPredictor<string> }
let renders: string[] = []

function ModelView() {
  const model = useModel(chat)
  Object.assign(shown, { model })
  renders.push(model.state)
  return createElement('p', { id: 'state' }, `${model.name}: ${model.state}`)
}

function PredictorView() {
  Object.assign(shown, { predictor: usePredictor(double) })
  return createElement('p', null, JSON.stringify(shown.predictor.outputs))
}

function App() {
  const { server: found, error } = useServer(async () => {
    opened += 1
    return server
  })
  if (error) throw error
  const children = [createElement(ModelView, { key: 1 }), createElement(PredictorView, { key: 2 })]
  return createElement('div', { id: found ? 'open' : 'opening' }, children)
}

const text = () => document.querySelector('#state')?.textContent

beforeAll(async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })
  const root = createRoot(document.body.appendChild(document.createElement('div')))
  await act(async () => root.render(createElement(StrictMode, null, createElement(App))))
})

test('the server opens once, and the model has its state', async () => {
  await act(async () => {
    await expect.poll(text).toBe('Chat: remote')
  })
  expect(document.querySelector('#open')).not.toBeNull()
  expect(opened).toBe(1)
})

test('a load shows its progress, is paused and resumed', async () => {
  const half = () => shown.model.progress?.loadedBytes
  await act(async () => {
    void shown.model.load()
    await expect.poll(half).toBe(5)
  })
  expect(text()).toBe('Chat: loading')
  await act(() => shown.model.pause())
  await act(async () => {
    await expect.poll(text).toBe('Chat: paused')
  })

  await act(async () => {
    void shown.model.load()
    await expect.poll(half).toBe(5)
    gate.allow()
    await expect.poll(text).toBe('Chat: loaded')
  })
  renders = []
  await act(() => shown.model.unload())
  await act(async () => {
    await expect.poll(text).toBe('Chat: stored')
  })
  expect(renders).not.toContain('remote')
})

test('a predictor has the outputs of the last run, or its error', async () => {
  expect(shown.predictor.outputs).toBeNull()
  await act(async () => void (await shown.predictor.predict({ x: 21 })))
  expect(shown.predictor).toMatchObject({ outputs: { y: 42 }, error: null })
  await act(() => shown.predictor.predict({ x: 'no' }).catch(() => undefined))
  expect(shown.predictor.error).toMatchObject({ message: 'x is no number.' })
  await act(async () => void (await shown.predictor.predict({ x: 1 })))
  expect(shown.predictor).toMatchObject({ outputs: { y: 2 }, error: null })
})
