// The library's part: it answers /v1 and keeps its own files.
importScripts('sw.js')

/** Change the number with each deployment, so that the files below are kept anew. */
const CACHE = '__NAME__:1'
const FILES = ['./', 'main.js', 'chat.js', 'style.css'].map((file) => new URL(file, location).href)

addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)))
})

addEventListener('activate', (event) => event.waitUntil(removeOthers()))

// The server answers while it can.
addEventListener('fetch', (event) => {
  if (!FILES.includes(event.request.url)) return
  event.respondWith(fetch(event.request).catch(() => caches.match(event.request)))
})

async function removeOthers() {
  const names = await caches.keys()
  const others = names.filter((name) => name.startsWith('__NAME__:') && name !== CACHE)
  await Promise.all(others.map((name) => caches.delete(name)))
}
