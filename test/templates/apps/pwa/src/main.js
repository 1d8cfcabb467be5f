import { server } from './serve.js'

const response = await server.fetch(`${server.baseURL}/chat/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    model: '@inorigin/guide',
    temperature: 0,
    messages: [{ role: 'user', content: 'What is inorigin?' }],
  }),
})
document.querySelector('#answer').textContent = (await response.json()).choices[0].message.content
