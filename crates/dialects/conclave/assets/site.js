"use strict";
// Suggestions while typing, "/" to search, a preview while writing. Every page works without this.
const map = document.body.dataset.map;
const search = document.querySelector(".search input");
const list = document.getElementById("suggestions");
let waiting;
search?.addEventListener("input", () => {
  clearTimeout(waiting);
  const text = search.value.trim();
  if (text.length < 2) return;
  waiting = setTimeout(async () => {
    const query = new URLSearchParams({ q: text, labels: "1", limit: "8" });
    const answer = await fetch(`/topics/v1/${map}/search?${query}`);
    if (!answer.ok) return;
    const { items } = await answer.json();
    list.replaceChildren(...items.map((it) => {
      const option = document.createElement("option");
      option.value = it.label;
      return option;
    }));
  }, 150);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    search?.focus();
  }
});
const text = document.querySelector("textarea[name=text]");
const preview = document.getElementById("preview");
text?.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const behaviour = document.querySelector("input[name=behaviour]").value;
    const body = JSON.stringify({ behaviour, text: text.value, linkBase: `/t/${map}/` });
    const answer = await fetch("/topics/v1/render", { method: "POST", headers: { "content-type": "application/json" }, body });
    if (!answer.ok) return;
    // The server has made the text harmless: raw HTML in it is text.
    preview.innerHTML = await answer.text();
    preview.hidden = false;
  }, 300);
});
