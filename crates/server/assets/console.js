// What every page loads: live updates, times that go on, and buttons that copy.
import { follow } from "./live.js";
import { tick } from "./times.js";
import { offer } from "./copy.js";

offer(document);
tick(document);
if (document.body.dataset.follows) {
  follow(document.body.dataset.follows, () => offer(document));
}
