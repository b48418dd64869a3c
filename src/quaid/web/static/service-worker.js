// Shows a page of its own if the server does not answer, and caches static files, whose URLs contain a hash.
// Pages and answers of the API are never cached. The server prepends RELEASE, a hash of all static files, and FILES.

const CACHE = `quaid-${RELEASE}`;

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(["/offline", ...FILES])));
});

addEventListener("activate", (event) => {
  event.waitUntil(
    Promise.all([
      caches.keys().then((names) => Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name)))),
      registration.navigationPreload?.enable(),
      clients.claim(),
    ]),
  );
});

async function page(event) {
  try {
    // The preload is the browser's own request: same cookies and headers as without a service worker. It is used for
    // every page, because it is sent for every page, and a login link works only once.
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch {
    return (await caches.match("/offline")) ?? Response.error();
  }
}

async function file(request) {
  const cached = await caches.match(request);
  if (cached) return cached;
  const answer = await fetch(request);
  if (answer.ok && answer.headers.get("cache-control")?.includes("immutable")) {
    const cache = await caches.open(CACHE);
    await cache.put(request, answer.clone());
  }
  return answer;
}

addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (request.mode === "navigate") event.respondWith(page(event));
  else if (url.pathname.startsWith("/static/") && url.searchParams.has("v")) event.respondWith(file(request));
});
