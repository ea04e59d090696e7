// Keeps a page up to date: the change feed says that something has happened, the server renders the page again, and what differs takes its place.
//
// However much happens, the page is asked for at a pace: one request at a time, with a pause after it that grows with how long it took. A feed that says more
// than anybody can see is left alone until the next pause is over. Nothing is followed while nobody looks.
import { morph } from "./morph.js";

const PAUSE_MIN = 400; // ms between two renderings
const PAUSE_MAX = 10_000;
const FLOOD = 300; // changes between two renderings: more are not read
const AGAIN_MAX = 15_000; // ms between two tries to reach the server
const MOVES_EVERY = 5_000; // ms after which what is under way is drawn anew

/** Follows a feed; `after` is called when something was put in place. */
export function follow(feed, after) {
  const button = document.getElementById("live");
  const word = button.querySelector(".word");
  let source = null; // the feed, while it is open
  let cursor = null; // the last change that was seen
  let tries = 0; // in vain, since it was last open
  let seen = 0; // changes since the last rendering
  let dirty = false; // the page is out of date
  let timer = null; // of the next rendering
  let again = null; // of the next try to reach the server
  let pause = PAUSE_MIN;
  let busy = false;
  let held = false; // by the reader

  const say = (state) => {
    if (button.dataset.state === state) return;
    button.dataset.state = state;
    word.textContent = state;
  };

  function open() {
    if (source || held || document.hidden) return;
    again = clearTimeout(again);
    const url = new URL(feed, location.href);
    if (cursor && tries < 2) url.searchParams.set("after", cursor); // a cursor that was refused twice may be unknown by now
    source = new EventSource(url);
    source.onopen = () => {
      tries = 0;
      say("live");
      mark(); // whatever has happened since the page was rendered
    };
    source.onmessage = (message) => {
      if (message.lastEventId) cursor = message.lastEventId;
      mark();
      if (++seen > FLOOD) {
        close();
        cursor = null; // it goes on from then, and the page is rendered anew
      }
    };
    source.onerror = () => {
      say("reconnecting"); // the browser tries again by itself, with Last-Event-ID, unless it was told to go away
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        retry();
      }
    };
  }

  function retry() {
    tries += 1;
    const wait = Math.min(AGAIN_MAX, 500 * 2 ** tries) * (0.75 + Math.random() / 2);
    clearTimeout(again);
    again = setTimeout(open, wait);
  }

  function close() {
    source?.close();
    source = null;
  }

  function mark() {
    dirty = true;
    if (!timer && !busy) timer = setTimeout(render, 0);
  }

  async function render() {
    timer = null;
    if (!dirty || busy || held || document.hidden) return;
    [busy, dirty, seen] = [true, false, 0];
    const began = performance.now();
    const done = await fetched();
    busy = false;
    dirty ||= !done;
    pause = done ? Math.max(PAUSE_MIN, 3 * (performance.now() - began)) : 2 * pause;
    pause = Math.min(PAUSE_MAX, pause);
    if (document.querySelector("[data-moves]")) moves();
    timer = setTimeout(() => {
      timer = null;
      if (!again) open(); // if it was too much
      if (dirty && source?.readyState === EventSource.OPEN) mark(); // else it is when the feed is back
    }, pause);
  }

  async function fetched() {
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      const done = answer.ok || answer.status === 404;
      if (done) put(await answer.text());
      return done;
    } catch {
      return false; // the server is away
    }
  }

  function put(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const main = fresh.querySelector("main");
    if (!main || held) return;
    requestAnimationFrame(() => {
      document.title = fresh.title;
      morph(document.querySelector("main"), main);
      after();
    });
  }

  let moving = null;
  function moves() {
    clearTimeout(moving);
    moving = setTimeout(mark, MOVES_EVERY);
  }

  function pauseOrGoOn() {
    if (held || document.hidden) {
      close();
      again = clearTimeout(again);
      say("paused");
    } else {
      say("reconnecting");
      open();
    }
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    held = !held;
    button.setAttribute("aria-pressed", String(held));
    pauseOrGoOn();
  });
  document.addEventListener("visibilitychange", pauseOrGoOn);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && pauseOrGoOn());
  open();
}
