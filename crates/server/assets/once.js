// A form that changes something is sent once, however often somebody clicks.

const sent = new WeakSet();

document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (sent.has(event.target)) event.preventDefault();
  sent.add(event.target);
});

// The page that somebody comes back to may be the one that was left.
addEventListener("pageshow", (event) => event.persisted && location.reload());
