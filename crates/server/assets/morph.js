// Puts what differs of a new tree into an old one. What stays the same stays the same element: open folds, scroll and focus are kept.

/** Makes `old` like `fresh`. Children are told apart by `data-key` or `id`, and by their place where they have none. */
export function morph(old, fresh) {
  attributes(old, fresh);
  children(old, fresh);
}

function attributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !isOwn(old, name)) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !isOwn(old, name)) old.removeAttribute(name);
  }
}

/** What the reader has done to the page is not undone. */
function isOwn(element, name) {
  return (element.localName === "details" && name === "open") || (element.hasAttribute("data-copy") && name === "hidden");
}

function children(old, fresh) {
  const kept = new Map();
  for (const child of old.children) {
    const key = keyOf(child);
    if (key) kept.set(key, child);
  }
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    let match = key ? kept.get(key) : plain(at) && like(at, wanted) ? at : null;
    if (match && !like(match, wanted)) match = null;
    if (!match) {
      const added = document.importNode(wanted, true);
      if (key && added.nodeType === Node.ELEMENT_NODE) added.classList.add("fresh");
      old.insertBefore(added, at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else old.insertBefore(match, at);
    if (match.nodeType === Node.ELEMENT_NODE) {
      if (!isBusy(match)) morph(match, wanted);
    } else if (match.data !== wanted.data) match.data = wanted.data;
    if (key) kept.delete(key);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
  for (const gone of kept.values()) gone.remove();
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || null : null);
const plain = (node) => node && !keyOf(node);
const like = (one, other) => one.nodeType === other.nodeType && one.nodeName === other.nodeName;

/** Somebody is about to fill it in, or it says what it has just done. */
const isBusy = (element) =>
  (element.localName === "form" && element.contains(document.activeElement)) || element.hasAttribute("data-copy");
