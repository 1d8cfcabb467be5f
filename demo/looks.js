/** Shows the page as the visitor left it, before the first paint: modules may run after it. */
for (const name of ['theme', 'history', 'panel']) {
  const kept = localStorage.getItem(`playground:${name}`)
  if (kept) document.documentElement.dataset[name] = kept
}
