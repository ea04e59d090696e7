// Times relative to now, which goes on. The words are those of `pages/words.rs`.

const coarse = (seconds) =>
  seconds < 60 ? `${seconds} s`
  : seconds < 3600 ? `${Math.floor(seconds / 60)} min`
  : seconds < 172800 ? `${Math.floor(seconds / 3600)} h`
  : `${Math.floor(seconds / 86400)} days`;

export function distance(at, now) {
  const seconds = Math.trunc((at - now) / 1000);
  if (seconds === 0) return "now";
  return seconds < 0 ? `${coarse(-seconds)} ago` : `in ${coarse(seconds)}`;
}

/** Brings all times up to date, once a second while somebody can see them. */
export function tick(root) {
  const bring = () => {
    if (root.hidden) return;
    const now = Date.now();
    for (const time of root.querySelectorAll("time[data-relative]")) {
      const text = distance(Date.parse(time.dateTime), now);
      if (time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(bring, 1000);
}
