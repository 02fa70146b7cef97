"use strict";
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// An example of what a schema describes: required members alone.
const example = (schema, all) => {
  if (schema.$ref) return example(all[schema.$ref.split("/").pop()], all);
  if (schema.anyOf) return example(schema.anyOf[0], all);
  if (schema.enum) return schema.enum[0];
  switch (schema.type) {
    case "object": {
      const members = (schema.required || []).map((it) => [it, example(schema.properties[it], all)]);
      return Object.fromEntries(members);
    }
    case "array": return schema.items && schema.items.type ? [example(schema.items, all)] : [];
    case "integer": case "number": return 0;
    case "boolean": return false;
    default: return schema.format === "date-time" ? "2020-01-15T08:00:00Z" : "";
  }
};

const form = (path, method, operation, schemas) => {
  const fields = (operation.parameters || []).map((it) => ({ ...it, input: make("input", { spellcheck: false }) }));
  const content = operation.requestBody && operation.requestBody.content["application/json"];
  const body = content && make("textarea", { spellcheck: false });
  if (body) body.value = JSON.stringify(example(content.schema, schemas), null, 2);
  const answer = make("pre", { hidden: true });
  const send = make("button", { type: "submit" }, "Send");
  const shown = make("form", {}, ...fields.map((it) => make("label", {}, `${it.name} (${it.in})`, it.input)));
  if (body) shown.append(make("label", {}, "body", body));
  shown.append(send, answer);
  shown.onsubmit = async (event) => {
    event.preventDefault();
    let url = path;
    const query = new URLSearchParams();
    for (const { name, in: place, input } of fields) {
      if (place === "path") url = url.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (input.value) query.append(name, input.value);
    }
    if (query.size) url += `?${query}`;
    const headers = {};
    const token = document.getElementById("token").value.trim();
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers["Content-Type"] = "application/json";
    answer.hidden = false;
    try {
      const got = await fetch(url, { method: method.toUpperCase(), headers, body: body ? body.value : undefined });
      let text = await got.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* Not JSON: as it is. */ }
      answer.textContent = `${url}\n${got.status} ${got.statusText}\n\n${text}`;
    } catch (error) {
      answer.textContent = `${url}\n${error}`;
    }
  };
  return shown;
};

const show = ({ paths, components }) => {
  const sections = new Map();
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const name = operation.tags[0];
      const line = make("details", {}, make("summary", {}, make("b", {}, method.toUpperCase()), path));
      line.addEventListener("toggle", () => line.append(form(path, method, operation, components.schemas)), { once: true });
      if (!sections.has(name)) sections.set(name, make("section", {}, make("h2", {}, name)));
      sections.get(name).append(line);
    }
  }
  document.querySelector("main").replaceChildren(...sections.values());
  document.getElementById("wanted").oninput = ({ target }) => {
    const wanted = target.value.toLowerCase();
    for (const section of sections.values()) {
      const lines = [...section.querySelectorAll("details")];
      for (const line of lines) line.hidden = !line.querySelector("summary").textContent.toLowerCase().includes(wanted);
      section.hidden = lines.every((it) => it.hidden);
    }
  };
};

fetch("explorer-json").then((it) => it.json()).then(show);
