import { describe, expect, it } from 'vitest'
import { AREA, errorOf, scriptedHost, send } from './scripted-host.ts'

describe('predictors', () => {
  it.each(['@yusuf/area', '@yusuf%2Farea', '%40yusuf%2Farea'])(
    'are read by %s, and nothing more than they are',
    async (path) => {
      expect(await (await send(scriptedHost(), `/v1/predictors/${path}`)).json()).toEqual(AREA)
    },
  )

  it('that are not there: 404', async () => {
    const error = await errorOf(await send(scriptedHost(), '/v1/predictors/@yusuf/none'), 404)
    expect(error.type).toBe('not_found_error')
  })
})

describe('predictions', () => {
  const body = { tag: '@yusuf/area', clientId: 'node' }

  it('are created', async () => {
    const host = scriptedHost()
    const asked = { ...body, configurationId: 'c', deviceId: 'd', predictionId: 'pred_0' }
    const response = await send(host, '/v1/predictions', { body: { ...asked, extra: 1 } })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-inorigin-ignored')).toBe('extra')
    expect(await response.json()).toEqual({
      id: 'pred_1',
      tag: '@yusuf/area',
      configuration: 'c1',
      resources: [
        {
          type: 'onnx',
          url: `http://localhost/v1/resources/${'ab'.repeat(32)}`,
          name: 'area.onnx',
        },
      ],
      created: '2026-02-03T04:05:06Z',
    })
    expect(host.predictions).toEqual([asked])
  })

  it('take null for what is optional', async () => {
    const host = scriptedHost()
    await send(host, '/v1/predictions', {
      body: { ...body, configurationId: null, deviceId: null, predictionId: null },
    })
    expect(host.predictions).toEqual([body])
  })

  it.each([
    ['tag', { clientId: 'node' }],
    ['clientId', { tag: '@yusuf/area' }],
    ['tag', { ...body, tag: 5 }],
    ['clientId', { ...body, clientId: '' }],
    ['configurationId', { ...body, configurationId: 5 }],
    ['deviceId', { ...body, deviceId: {} }],
    ['predictionId', { ...body, predictionId: [] }],
  ])('say what is wrong with %s', async (param, wrong) => {
    expect(
      (await errorOf(await send(scriptedHost(), '/v1/predictions', { body: wrong }), 400)).param,
    ).toBe(param)
  })
})
