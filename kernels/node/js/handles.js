'use strict';
// What keeps an event loop busy: servers, sockets, children, watchers, threads. What
// came since a stopped cell began is closed with it; what was there before lives on.

const { apply } = Reflect;
const list = process._getActiveHandles;

// handles are the active ones now. The list is an array of the user's realm, whose
// iterator may be anything.
function handles() {
  const active = apply(list, process, []);
  const found = new Set();
  for (let i = 0; i < active.length; i++) found.add(active[i]);
  return found;
}

function closeSince(cell) {
  for (const thread of cell.threads) quietly(thread, 'terminate');
  for (const handle of handles()) {
    if (cell.before.has(handle)) continue;
    quietly(handle, 'kill', 'SIGKILL');
    quietly(handle, 'closeAllConnections');
    quietly(handle, 'terminate');
    quietly(handle, 'destroy');
    quietly(handle, 'close');
  }
}

function quietly(handle, method, ...args) {
  try {
    const f = handle[method];
    if (typeof f !== 'function') return;
    const result = apply(f, handle, args);
    if (result && typeof result.then === 'function') result.then(() => {}, () => {});
  } catch {
    // It is closed already, or no longer what it was.
  }
}

module.exports = { handles, closeSince };
