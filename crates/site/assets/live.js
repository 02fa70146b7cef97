// Keeps the part of the page that changes up to date, by asking for the page again. Without this there is a link that does.
"use strict";
(() => {
  const first = document.querySelector("[data-live]");
  if (!first) return;
  const pause_ms = Number(first.dataset.live);
  async function again() {
    let part = null;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      part = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
    } catch { /* The server or the connection is away: it is asked again. */ }
    const shown = document.getElementById("live");
    // Whoever reads or selects within it is not disturbed.
    const is_used = shown.contains(document.activeElement) || !getSelection().isCollapsed;
    if (part && !is_used) shown.replaceWith(document.adoptNode(part));
    if (!part || "live" in part.dataset || is_used) setTimeout(again, pause_ms);
  }
  setTimeout(again, pause_ms);
})();
