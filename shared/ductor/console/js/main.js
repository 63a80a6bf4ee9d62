// Starts the console: sign-in, the frame around every page, and the way from an address to a page.

import { h, put } from "./dom.js";
import { onSignedOut } from "./api.js";
import { match, navigate, readHash } from "./router.js";
import { consumeLink, session, signOut } from "./session.js";
import { frame } from "./frame.js";
import { enterPlace, leavePlace } from "./places.js";
import { routes } from "./pages/index.js";
import { emptyState, errorNotice } from "./ui/notice.js";
import { signInPage } from "./signin.js";

const HOME = "/runs";
const app = document.getElementById("app");

let shell = null;
let shown = null;
let turn = 0;

function leave() {
  if (shown?.page) leavePlace(shown.page.keep?.());
  shown?.abort.abort();
  shown?.page?.dispose?.();
  shown = null;
}

function showSignIn(error) {
  leave();
  turn += 1;
  shell = null;
  document.title = "Sign in · Ductor";
  put(app, signInPage({ error, onDone: show }));
}

async function show() {
  if (!session()) return showSignIn();
  const { path, query } = readHash();
  if (path === "/") return navigate(HOME, {}, { replace: true });
  const found = match(routes, path);
  shell ??= mount();
  shell.mark(found?.route.section ?? found?.route.pattern ?? "");
  const mine = (turn += 1);
  if (shown?.path === path && shown.page?.update) {
    enterPlace();
    shown.page.update({ ...shown.ctx, query });
    return undefined;
  }
  leave();
  if (!found) {
    put(shell.main, emptyState("There is no such page", path, h("a", { class: "button", href: `#${HOME}` }, "To the runs")));
    return undefined;
  }
  return open(found, path, query, mine);
}

async function open({ route, params }, path, query, mine) {
  const abort = new AbortController();
  const place = enterPlace();
  const ctx = { params, query, kept: place?.kept, signal: abort.signal, title: (text) => { document.title = `${text} · Ductor`; } };
  ctx.title(route.nav ?? "Console");
  shown = { path, abort, ctx, page: null };
  try {
    const module = await route.load();
    if (mine !== turn) return;
    const page = await module.render(ctx);
    if (mine !== turn) {
      page.dispose?.();
      return;
    }
    shown.page = page;
    put(shell.main, page.element);
    // What had the focus has gone with its page: the next Tab begins in the new one.
    if (document.activeElement === document.body) shell.main.focus({ preventScroll: true });
    window.scrollTo(0, place?.y ?? 0);
    const newest = readHash();
    if (newest.path === path && page.update && JSON.stringify(newest.query) !== JSON.stringify(query)) page.update({ ...ctx, query: newest.query });
  } catch (error) {
    if (mine === turn && error.name !== "AbortError") put(shell.main, errorNotice(error));
  }
}

function mount() {
  const made = frame(routes, {
    onSignOut: () => {
      signOut();
      showSignIn();
    },
  });
  put(app, made.element);
  return made;
}

onSignedOut((error) => {
  signOut();
  showSignIn(error);
});
window.addEventListener("hashchange", () => {
  consumeLink();
  show();
});
consumeLink();
show();
