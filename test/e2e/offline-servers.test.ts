/** Pages open without their web server, whatever it sent while it was there. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Page } from 'playwright'
import sirv from 'sirv'
import { afterEach, describe, expect, test } from 'vitest'
import { type Demo, serveDemo } from '../setup/demo.ts'
import { hasApt, installPackage, isExecutable, onPath } from '../setup/programs.ts'
import { isKept } from '../support/offline.ts'
import { ask, usePlayground, visit } from '../support/playground.ts'
import { openSite, type Site, type SiteOptions } from '../support/site.ts'

const SLOW = { tags: ['slow'] }

let site: Site | undefined

afterEach(async () => {
  await site?.close()
  site = undefined
})

const PAGE = '/shop/index.html'
const LOGIN = '<!doctype html><title>Log in</title>'

/** A small app with a service worker that keeps it. */
const shop = (
  version: string,
  files = ['./', 'index.html', 'main.js'],
): Record<string, string> => ({
  [PAGE]: `<!doctype html><link rel="icon" href="data:,"><p id="state">no script</p>
    <script type="module" crossorigin src="main.js"></script>`,
  '/shop/main.js': `document.querySelector('#state').textContent = '${version}'
    navigator.serviceWorker.register('sw.js', { type: 'module' })`,
  '/shop/sw.js': `import { keepApp } from '/package/sw/index.js'
    keepApp(${JSON.stringify({ version, files })})`,
})

const stateOf = (page: Page) => page.locator('#state').innerText()

async function openShop(options: SiteOptions = {}, pages = shop('first')) {
  site = await openSite({
    folders: { '/package/': 'dist' },
    redirects: { '/shop/': PAGE },
    ...options,
    pages,
  })
  return { site, page: await site.open('/shop/') }
}

const namesOfCaches = (page: Page) => page.evaluate(() => caches.keys())

async function untilKept({ url }: Site, page: Page, version: string): Promise<void> {
  const name = `inorigin-app:${url}/shop/:${version}`
  await expect.poll(() => namesOfCaches(page)).toEqual([name])
  const count = async (of: string) => (await (await caches.open(of)).keys()).length
  await expect.poll(() => page.evaluate(count, name)).toBeGreaterThan(1)
}

describe('an app that is kept opens without a server that sent', () => {
  test.each<[string, SiteOptions]>([
    ['Vary: Origin', { headers: { vary: 'Origin, Accept, Sec-Fetch-Mode, Cookie' } }],
    ['Vary: *', { headers: { vary: '*' } }],
    ['no-store', { headers: { 'cache-control': 'no-store' } }],
    [
      '304',
      { headers: { 'cache-control': 'private, max-age=0, must-revalidate' }, hasEtags: true },
    ],
  ])('%s', { tags: ['everyday'] }, async (_header, options) => {
    const { site: opened, page } = await openShop(options)
    await untilKept(opened, page, 'first')
    await page.reload()
    await opened.endServer()
    // Also at the address that the server redirected.
    for (const path of [PAGE, '/shop/']) {
      await page.goto(opened.url + path)
      expect(await stateOf(page)).toBe('first')
    }
  })
})

describe('a kept script answers in place of', () => {
  const redirects: Record<string, string> = {}
  test.each<[string, (opened: Site) => void]>([
    ['an empty one', ({ pages }) => (pages['/shop/main.js'] = '')],
    ['a page to log in', () => (redirects['/shop/main.js'] = '/login.html')],
    ['an error', ({ pages }) => delete pages['/shop/main.js']],
  ])('%s', { tags: ['everyday'] }, async (_what, fail) => {
    delete redirects['/shop/main.js']
    const pages = { ...shop('first', ['index.html', 'main.js']), '/login.html': LOGIN }
    site = await openSite({ folders: { '/package/': 'dist' }, redirects, pages })
    const page = await site.open(PAGE)
    await untilKept(site, page, 'first')
    fail(site)
    await page.reload()
    expect(await stateOf(page)).toBe('first')
  })
})

test('an update replaces a kept app, which opens again without the server', SLOW, async () => {
  const { site: opened, page } = await openShop()
  await untilKept(opened, page, 'first')
  Object.assign(opened.pages, shop('second'))
  await page.reload()
  expect(await stateOf(page)).toBe('second')
  // The new script takes over when no page of the old one is open.
  await page.evaluate(() => navigator.serviceWorker.getRegistration().then((one) => one?.update()))
  await page.goto('about:blank')
  await expect
    .poll(async () => {
      await page.goto(opened.url + PAGE)
      return namesOfCaches(page)
    })
    .toEqual([`inorigin-app:${opened.url}/shop/:second`])
  await opened.endServer()
  await page.reload()
  expect(await stateOf(page)).toBe('second')
})

test('an app of which a file is missing works, says which, and is kept later', SLOW, async () => {
  const { site: opened, page } = await openShop({}, shop('first', ['index.html', 'gone.css']))
  const warned = opened.context.waitForEvent('console', (message) =>
    message.text().includes('does not open without a network'),
  )
  await page.reload()
  expect((await warned).text()).toContain('/shop/gone.css cannot be kept')
  expect(await stateOf(page)).toBe('first')
  opened.pages['/shop/gone.css'] = 'p { color: red }'
  const session = await opened.context.newCDPSession(page)
  await session.send('ServiceWorker.enable')
  await session.send('ServiceWorker.stopAllWorkers')
  await page.reload()
  await untilKept(opened, page, 'first')
})

describe('the playground', () => {
  const open = usePlayground()

  test('says why it does not start if its server ended before it was kept', SLOW, async () => {
    site = await openSite()
    const { page } = await open(`${site.url}/?device=wasm`)
    await page.waitForFunction(() => 'inorigin' in window)
    const isPageKept = () => caches.match('./').then((found) => found !== undefined)
    await expect.poll(() => page.evaluate(isPageKept)).toBe(true)
    await site.endServer()
    await page.reload()
    const text = await page.locator('.notice.bad').innerText()
    expect(text).toContain('The web server does not answer, and this browser has not kept')
    expect(await page.locator('#loading').isVisible()).toBe(false)
  })

  test.each([
    ["Vite's preview", serveDemo],
    ['sirv', serveSirv],
    ['nginx', serveNginx],
  ])('opens and answers without the server of %s', SLOW, async (_name, serve) => {
    const server = await serve()
    try {
      const { page, answer } = await open(`${server.url}?device=wasm`)
      await ask(page, 'Who are you?')
      const text = await answer()
      await expect.poll(() => isKept(page, server.url)).toBe(true)
      await page.reload()
      await server.close()
      await visit(page, page.url())
      await page.waitForFunction(() => 'inorigin' in window)
      await page.getByRole('button', { name: 'New chat' }).first().click()
      await ask(page, 'Who are you?')
      expect((await answer()).length).toBeGreaterThan(text.length / 4)
    } finally {
      await server.close()
    }
  })
})

async function serveSirv(): Promise<Demo> {
  const server = createServer(sirv('dist-demo', { etag: true }))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://localhost:${port}/`,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

const PROGRAMS = [...onPath(['nginx']), '/usr/sbin/nginx']

/** Serves the playground below a path, as Debian's nginx is configured, with types of its own. */
async function serveNginx(): Promise<Demo> {
  if (!PROGRAMS.some(isExecutable) && hasApt()) installPackage('nginx-light')
  const program = PROGRAMS.find(isExecutable)
  if (!program) throw new Error('This test needs nginx on the PATH.')
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-nginx-'))
  mkdirSync(join(folder, 'logs'))
  const port = await freePort()
  const config = `daemon off; worker_processes 1; error_log logs/error.log; pid nginx.pid; user root;
events {}
http {
  include /etc/nginx/mime.types; gzip on; gzip_vary on; gzip_types text/css text/javascript application/javascript;
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server { listen 127.0.0.1:${port}; location /shop/ { alias ${resolve('dist-demo')}/; } }
}`
  writeFileSync(join(folder, 'nginx.conf'), config)
  const child = spawn(program, ['-p', folder, '-c', 'nginx.conf'], { stdio: 'ignore' })
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  const url = `http://localhost:${port}/shop/`
  await expect
    .poll(() =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    .toBe(true)
  return {
    url,
    async close() {
      child.kill()
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  await new Promise((done) => server.close(done))
  return port
}
