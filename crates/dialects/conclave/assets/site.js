"use strict";
// Suggestions while typing, "/" to search, a preview while writing. Every page works without this.
const map = document.body.dataset.map;
const search = document.querySelector(".search input");
const list = document.getElementById("suggestions");
let waiting;
let asked = 0;
const encoded = (id) => encodeURIComponent(id).replaceAll("%2F", "/");

function show(items) {
  list.replaceChildren(...items.map((it, at) => {
    const row = document.createElement("li");
    row.id = `suggestion-${at}`;
    row.setAttribute("role", "option");
    const link = document.createElement("a");
    link.href = `/t/${map}/${encoded(it.id)}`;
    link.tabIndex = -1;
    link.append(it.label, " ");
    if (it.id !== it.label) {
      const small = document.createElement("small");
      small.textContent = it.id;
      link.append(small);
    }
    row.append(link);
    return row;
  }));
  list.hidden = items.length === 0;
  search.setAttribute("aria-expanded", String(!list.hidden));
  choose(-1);
}

let chosen = -1;
function choose(at) {
  chosen = at;
  [...list.children].forEach((row, n) => row.setAttribute("aria-selected", String(n === at)));
  if (at < 0) search.removeAttribute("aria-activedescendant");
  else search.setAttribute("aria-activedescendant", `suggestion-${at}`);
}

search?.addEventListener("input", () => {
  clearTimeout(waiting);
  const text = search.value.trim();
  if (text.length < 2) return show([]);
  waiting = setTimeout(async () => {
    const mine = ++asked;
    const query = new URLSearchParams({ q: text, labels: "1", limit: "8" });
    const answer = await fetch(`/topics/v1/${map}/search?${query}`);
    // An answer that was overtaken by a later one is of no use.
    if (answer.ok && mine === asked) show((await answer.json()).items);
  }, 120);
});
search?.addEventListener("keydown", (event) => {
  const n = list.children.length;
  if (event.key === "ArrowDown" && n) choose((chosen + 1) % n);
  else if (event.key === "ArrowUp" && n) choose((chosen + n - 1) % n);
  else if (event.key === "Enter" && chosen >= 0) list.children[chosen].firstElementChild.click();
  else if (event.key === "Escape") show([]);
  else return;
  event.preventDefault();
});
document.addEventListener("click", (event) => {
  if (search && !event.target.closest(".search")) show([]);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
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
    const headers = { "content-type": "application/json" };
    const answer = await fetch("/topics/v1/render", { method: "POST", headers, body });
    if (!answer.ok) return;
    // The server has made the text harmless.
    preview.innerHTML = await answer.text();
    preview.hidden = false;
  }, 300);
});
document.querySelector(".removal")?.addEventListener("submit", (event) => {
  if (!window.confirm("Remove this topic with all that is said of it?")) event.preventDefault();
});
