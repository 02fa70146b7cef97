// Uploads in pieces, with their progress. One that breaks off goes on where it stopped, also when the page was left and the
// same file is chosen again. Without this the form sends whole files.
"use strict";
(() => {
  const form = document.querySelector("form[data-uploads]");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const said = form.dataset;
  const WAITS_MS = [1000, 2000, 5000, 10000, 30000];
  const list = document.createElement("ul");
  list.className = "uploads";
  form.append(list);
  const token = () => form.querySelector("[name=_csrf]").value;
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));

  /** A request; what it answers as {status, body}, and status 0 where nothing came. */
  function ask(method, address, body, headers = {}, progress = null, begun = null) {
    return new Promise((done) => {
      const request = new XMLHttpRequest();
      request.open(method, address);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      if (progress) request.upload.onprogress = (it) => progress(it.loaded);
      request.onloadend = () => {
        let answer = {};
        try { answer = JSON.parse(request.responseText); } catch { /* No words of this server's. */ }
        done({ status: request.status, body: answer });
      };
      if (begun) begun(request);
      request.send(body);
    });
  }

  /** The line of one file. */
  function line(file) {
    const item = document.createElement("li");
    const name = document.createElement("span");
    name.textContent = file.name;
    const bar = document.createElement("progress");
    bar.max = Math.max(file.size, 1);
    bar.value = 0;
    bar.setAttribute("aria-label", `${said.progress} ${file.name}`);
    const state = document.createElement("span");
    state.setAttribute("role", "status");
    const stop = document.createElement("button");
    stop.type = "button";
    stop.className = "quiet";
    stop.textContent = said.stop;
    stop.setAttribute("aria-label", `${said.stop} ${file.name}`);
    item.append(name, bar, state, stop);
    list.append(item);
    return {
      stop,
      show: (n) => { bar.value = n; },
      say: (text) => { if (state.textContent !== text) state.textContent = text; },
      end: () => { stop.remove(); },
    };
  }

  /** Brings one file over. Gives whether it is there. */
  async function bring(file, shown) {
    const control = { is_stopped: false, request: null };
    shown.stop.addEventListener("click", () => { control.is_stopped = true; control.request?.abort(); });
    const fields = {
      _csrf: token(), pid: said.pid, name: file.name, size: file.size, modified: file.lastModified,
      type: file.type, folder: form.querySelector("[name=folder]").value,
    };
    let upload = null;
    let n_failed = 0;
    for (;;) {
      if (control.is_stopped) {
        if (upload) await ask("DELETE", upload.address, null, { "X-CSRF-Token": token() });
        shown.say(said.stopped);
        return false;
      }
      let answer;
      if (!upload) {
        answer = await ask("POST", said.uploads, new URLSearchParams(fields), { "Content-Type": "application/x-www-form-urlencoded" });
        if (answer.status === 200 || answer.status === 201) {
          upload = answer.body;
          shown.show(upload.at);
          if (upload.at > 0) shown.say(said.goesOn);
          continue;
        }
      } else if (upload.at < file.size) {
        const piece = file.slice(upload.at, Math.min(upload.at + upload.piece_bytes, file.size));
        const from = upload.at;
        answer = await ask("PUT", `${upload.address}?at=${from}`, piece, { "X-CSRF-Token": token(), "Content-Type": "application/octet-stream" },
          (n) => { shown.show(from + n); shown.say(`${Math.floor(100 * (from + n) / file.size)} %`); }, (it) => { control.request = it; });
        if ((answer.status === 200 || answer.status === 409) && Number.isInteger(answer.body.at)) {
          upload.at = answer.body.at;
          if (answer.status === 200) n_failed = 0;
          continue;
        }
      } else {
        shown.show(file.size);
        shown.say(said.finishing);
        answer = await ask("POST", upload.address, null, { "X-CSRF-Token": token() });
        if (answer.status === 200) {
          shown.say(said.done);
          return true;
        }
      }
      if (control.is_stopped) continue;
      // What cannot succeed by trying again is told; a connection that broke, or a server that is away, is waited for.
      if (answer.status >= 400 && answer.status < 500 && answer.status !== 408 && answer.status !== 409 && answer.status !== 429) {
        shown.say(`${said.failed} ${answer.body.reason ?? answer.status}`);
        return false;
      }
      shown.say(said.waits);
      await pause(WAITS_MS[Math.min(n_failed, WAITS_MS.length - 1)]);
      n_failed += 1;
      upload = null;
    }
  }

  let is_busy = false;
  async function bring_all(files) {
    if (is_busy || files.length === 0) return;
    is_busy = true;
    let n_failed = 0;
    for (const file of files) {
      const shown = line(file);
      if (!(await bring(file, shown))) n_failed += 1;
      shown.end();
    }
    is_busy = false;
    input.value = "";
    if (n_failed === 0) location.reload();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    bring_all([...input.files]);
  });
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    bring_all([...event.dataTransfer.files]);
  });
  addEventListener("beforeunload", (event) => { if (is_busy) event.preventDefault(); });
})();
