// What every page loads: live updates, times that go on, buttons that copy, and forms that are sent once.
import { follow } from "./live.js";
import { tick } from "./times.js";
import { offer } from "./copy.js";
import "./once.js";

offer(document);
tick(document);
if (document.body.dataset.follows) {
  follow(document.body.dataset.follows, () => offer(document));
}
