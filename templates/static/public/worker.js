// The library's part: it answers /v1 and keeps its own files.
importScripts('sw.js')

// Keeps the page, so that it opens without a network. Change the version with each deployment.
inorigin.keepApp({ version: '1', files: ['./', 'main.js', 'chat.js', 'style.css'] })
